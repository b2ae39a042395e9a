"""Watching: what the server answers, what it never does, and the page that grows."""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, needs_browser
from fuzzing import contents
from selenium_axe_python.axe import Axe

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift import DQN, MLP, InputError, OnlineBudget, train
from rewardshift.cli import main
from rewardshift.files import write_atomic
from rewardshift.lab import FIGURES, train_unit
from rewardshift.lab.processes import Processes
from rewardshift.lab.results import unit_name
from rewardshift.lab.runner import RUNNING, Plan, pending_units, run_units
from rewardshift.lab.sweep.constants import Constants
from rewardshift.lab.sweep.run import SweepFile, figures_in, plan_sweep, sweep_folder
from rewardshift.lab.sweep.task import SweepTask, make_sweep, unit_run
from rewardshift.report.live import live_figure, live_run
from rewardshift.report.watch import Server, Watched, page_of, serving

TINY: dict[str, Any] = {"network": MLP((8,)), "batch_size": 8}
BUDGET = OnlineBudget(
    steps=60, capacity=60, evaluate_every=20, evaluation_episodes=1, checkpoint_every=20
)
SECRET = "a secret of somebody's own"
OUTSIDE = (
    *("/..", "/../secret", "/%2e%2e/secret", "/..%2fsecret", "/%2e%2e%2fsecret", "/....//secret"),
    *("//etc/passwd", "/etc/passwd", "/./", "/version/../secret", "/config.json", "/metrics.csv"),
    *("/?x=1", "http://127.0.0.1/secret", "file:///etc/passwd", "/\\..\\secret", "/%00", "*"),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, beside a file that no request may reach."""
    folder = tmp_path_factory.mktemp("watched")
    (folder / "secret").write_text(SECRET)
    train(DQN(**TINY), "CartPole-v1", seeds=2, budget=BUDGET, folder=folder / "run")
    return folder / "run"


@pytest.fixture
def server(run: Path) -> Iterator[Server]:
    with serving(run, 0) as server:
        yield server


def request(server: Server, method: str, path: str, **headers: str) -> tuple[int, str, Any]:
    """The status, the body and the headers of an answer to a request as it is given."""
    port = server.server_address[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in ({"Host": f"127.0.0.1:{port}"} | headers).items():
        if value:
            connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), answer.headers
    connection.close()
    return found


def test_the_page_is_served_and_nothing_else(server: Server, run: Path) -> None:
    before = contents(run)
    status, page, headers = request(server, "GET", "/")
    assert status == 200
    assert "DQN on CartPole-v1: so far" in page
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Access-Control-Allow-Origin"] is None
    head = request(server, "HEAD", "/")
    assert (head[0], head[1]) == (200, "")
    assert head[2]["Content-Length"] == headers["Content-Length"]
    assert re.fullmatch("[0-9a-f]{16}", request(server, "GET", "/version")[1])
    for path in OUTSIDE:
        status, body, _ = request(server, "GET", path)
        assert status in (400, 404), path
        assert SECRET not in body
        assert "root:" not in body
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"):
        assert request(server, method, "/")[0] == 501
    assert contents(run) == before


def test_only_requests_to_this_machine_by_its_name_are_answered(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    port = server.server_address[1]
    for host in ("evil.example", f"evil.example:{port}", "", "127.0.0.1", f"127.0.0.1:{port}.evil"):
        status, body, _ = request(server, "GET", "/", Host=host)
        assert status == 403
        assert "CartPole" not in body
    assert request(server, "GET", "/", Host=f"localhost:{port}")[0] == 200


def test_a_second_server_takes_another_port(run: Path) -> None:
    with serving(run) as first, serving(run) as second:
        assert first.address != second.address
        with pytest.raises(InputError, match="no free port among"):
            Server(Watched(run), first.server_address[1])
    with pytest.raises(InputError, match="no free port among 70000"):
        Server(Watched(run), 70_000)
    with pytest.raises(InputError, match="no folder"):
        Watched(run / "nothing")


def test_damage_is_told_and_does_not_end_the_server(run: Path, tmp_path: Path) -> None:
    broken = tmp_path / "run"
    shutil.copytree(run, broken)
    (broken / "config.json").write_text("{")
    with serving(broken, 0) as server:
        status, said, _ = request(server, "GET", "/")
        assert status == 500
        assert "no run in" in said
        shutil.copy(run / "config.json", broken / "config.json")
        assert request(server, "GET", "/")[0] == 200


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_command(run: Path, end: signal.Signals) -> None:
    # A shell starts what it runs in the background with Ctrl-C ignored.
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heeding}; from rewardshift.cli import console; console()"
    watching = subprocess.Popen(
        [sys.executable, "-c", code, "watch", str(run), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    assert watching.stdout is not None
    assert "http://127.0.0.1:" in watching.stdout.readline()
    watching.send_signal(end)
    out, err = watching.communicate(timeout=120)
    assert (watching.returncode, out, err) == (0, "stopped\n", "")


def test_a_reproduction_is_watched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["reproduce", "figure1", "--preset", "smoke", "--seeds", "1", "--jobs", "1"]
    assert main([*command, "--watch", "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert f"watching {tmp_path / 'out'}: http://127.0.0.1:" in said
    live = live_figure(tmp_path / "out" / "figure1", FIGURES["figure1"])
    assert live is not None
    assert live.finished


def planned(out: Path, seeds: int = 2) -> Plan:
    task = SweepTask("CartPole-v1")
    made = make_sweep(DQN(**TINY), task, BUDGET, Constants(shift=(-0.5,)))
    kept = SweepFile(made, "a command", {})
    plan = plan_sweep(kept, seeds, out, seeds)
    with sweep_folder(out, kept):
        pending_units(plan)
    return plan


def test_units_and_curves_so_far(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    figures = figures_in(tmp_path)
    live = live_figure(plan.folder, figures["sweep"])
    assert live is not None
    assert (live.units, live.done, live.begun, live.left) == (2, 0, [], None)
    assert "0 of 2 units of work done" in page_of(tmp_path)

    first, second = pending_units(plan)
    digest = plan.declared.digest(plan.preset, plan.terminal, (first.tasks, first.methods))
    place = plan.folder / RUNNING / unit_name(digest, first.seeds)
    place.parent.mkdir()
    unit_run(plan.declared, first).start(place)  # ended, but not kept
    begun = live_figure(plan.folder, figures["sweep"])
    assert begun is not None
    assert [(one.step, one.steps) for one in begun.begun] == [(60, 60)]
    (outcome,) = run_units(plan, [first], Processes(1))
    assert outcome.result is not None
    assert begun.curves == [c._replace(steps=list(c.steps)) for c in outcome.result.curves]

    live = live_figure(plan.folder, figures["sweep"])
    assert live is not None
    assert (live.done, live.begun) == (1, [])
    assert live.curves == outcome.result.curves
    assert live.left is not None
    assert live.left > 0
    list(run_units(plan, [second], Processes(1)))
    live = live_figure(plan.folder, figures["sweep"])
    assert live is not None
    assert live.finished


def test_curves_so_far_of_a_unit_that_trains_one_seed_after_the_other(tmp_path: Path) -> None:
    figure = FIGURES["offline-mechanism"]
    task, method = "CartPole-poor", "optimism+0"
    plan = Plan(figure.name, "smoke", 2, "zero", tmp_path)
    (unit,) = [u for u in pending_units(plan) if (u.tasks, u.methods) == ((task,), (method,))]
    digest = figure.digest("smoke", "zero", (unit.tasks, unit.methods))
    place = plan.folder / RUNNING / unit_name(digest, unit.seeds)
    place.mkdir(parents=True)
    first = train_unit(figure, unit._replace(seeds=unit.seeds[:1]), place)
    live = live_figure(plan.folder, figure)
    assert live is not None
    assert [curve for curve in live.curves if curve.values] == first
    (begun,) = live.begun
    assert begun.share == 0.5  # the second seed has not begun


def test_links_are_not_followed(run: Path, tmp_path: Path) -> None:
    plan = planned(tmp_path / "out", seeds=1)
    (unit,) = pending_units(plan)
    digest = plan.declared.digest(plan.preset, plan.terminal, (unit.tasks, unit.methods))
    running = plan.folder / RUNNING
    running.mkdir()
    (running / unit_name(digest, unit.seeds)).symlink_to(run)
    live = live_figure(plan.folder, plan.declared)
    assert live is not None
    assert live.begun == []
    shutil.rmtree(running)
    running.symlink_to(run)
    assert live_figure(plan.folder, plan.declared) == live
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "figure1").symlink_to(Path(__file__).parents[1] / "results" / "figure1")
    assert "Figure 1" not in page_of(tmp_path / "other")
    copied = tmp_path / "run"
    shutil.copytree(run, copied)
    (copied / "metrics.csv").unlink()
    (copied / "metrics.csv").symlink_to(run / "metrics.csv")
    with pytest.raises(InputError, match="symbolic link"):
        live_run(copied)


def test_a_plan_that_does_not_fit_is_told(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    for text in ("{", "[]", json.dumps({"preset": "sweep", "seeds": "many"})):
        (plan.folder / "plan.json").write_text(text)
        with pytest.raises(InputError, match=r"plan\.json"):
            live_figure(plan.folder, plan.declared)


@needs_browser
def test_the_page_grows_in_a_browser(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    whole = (folder / "metrics.csv").read_text()
    lines = whole.splitlines(keepends=True)
    write_atomic(folder / "metrics.csv", "".join(lines[:5]))  # two evaluations of two seeds
    with serving(folder, 0) as server, Browser() as browser:
        browser.get(server.address)
        assert "0 of 1 units of work done; about" in browser.one("#live [role=status]").text
        figure = browser.show("run-so-far")
        browser.one(f"{figure} .controls input:not([name])").click()  # logarithmic steps

        def points() -> int:
            return str(browser.one(f"{figure} .middle").get_attribute("d")).count("L") + 1

        assert points() == 2
        axe = Axe(browser)
        axe.inject()
        assert axe.run()["violations"] == []
        browser.execute_script("window.mark = 'the same page'")
        write_atomic(folder / "metrics.csv", whole)
        browser.until(lambda: points() == 3)
        assert browser.execute_script("return window.mark") == "the same page"
        assert browser.one(f"{figure} .controls input").is_selected()
        assert "1 of 1 units of work done" in browser.one("#live [role=status]").text
        assert browser.log("browser") == []
        where = {url.split("/")[2] for url in browser.requests() if url.startswith("http")}
        assert where == {server.address.split("/")[2]}
        server.shutdown()
        server.server_close()
        stopped = "The server has stopped"
        browser.until(lambda: stopped in browser.one("#live [role=status]").text)
