"""The page in a real browser: what it shows, what it does, and what it never does."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Browser, needs_browser
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from selenium_axe_python.axe import Axe

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.lab import FIGURES
from rewardshift.lab.figure import SCENARIOS
from rewardshift.lab.results import read_results, write_provenance
from rewardshift.report import write_page, write_report

ROOT = Path(__file__).parents[1]
ATTACK = "$_{$--><script>document.title='taken'</script><img src=x onerror=document.title='taken'>"

pytestmark = needs_browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """The browser, which must not complain and must not ask for anything but the page."""
    chromium.get("about:blank")
    chromium.log("browser")
    chromium.requests()
    set_width(chromium, 1440)
    yield chromium
    chromium.emulate()
    assert chromium.log("browser") == []
    assert {url.split(":")[0] for url in chromium.requests()} <= {"about", "data", "file"}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the results that are kept with the source."""
    folder = tmp_path_factory.mktemp("page") / "results"
    shutil.copytree(ROOT / "results", folder)
    return write_page(folder)


def set_width(browser: Browser, width: int) -> None:
    screen = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 700}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def test_the_page_is_small_and_opens_at_once(browser: Browser, page: Path) -> None:
    assert page.stat().st_size < 5_000_000
    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    browser.get(page.as_uri())
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    busy = {metric["name"]: metric["value"] for metric in metrics}["TaskDuration"]
    assert busy < 2  # seconds of the page's thread, which other processes do not lengthen
    assert len(browser.all(".chart:empty")) > 10  # each is drawn as it comes into view


def read_claims(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((ROOT / "results" / name / "claims.json").read_text())
    return found


def test_filters_choose_the_rows(browser: Browser, page: Path) -> None:
    browser.get(page.as_uri())

    def shown() -> list[str]:
        rows = browser.all("tr[data-verdict]")
        return [str(r.get_attribute("data-verdict")) for r in rows if r.is_displayed()]

    theirs, ours = browser.all("details.all")
    assert shown() == []
    for table in (theirs, ours):
        fold = table.find_element(By.TAG_NAME, "summary")
        fold.click()
        assert set(shown()) == {"supported", "contradicted", "inconclusive"}
        fold.click()
        assert shown() == []
    browser.one("[value=supported]").click()
    assert set(shown()) == {"contradicted", "inconclusive"}  # what is asked for is unfolded
    Select(browser.one("[name=scenario]")).select_by_visible_text(SCENARIOS["goals"])
    assert shown() == ["contradicted"]
    browser.one("[value='not tested']").click()
    assert shown() == ["not tested", "contradicted", "not tested"]
    claims = sum(len(figure.claims) for figure in FIGURES.values())
    told = browser.one("form [role=status]")
    others = sum(claim["verdict"] == "supported" for claim in read_claims("fetch"))
    assert told.text == f"3 of {claims} claims shown; {others} hidden by their verdict"
    for verdict in ("not tested", "contradicted", "inconclusive"):
        browser.one(f"[value='{verdict}']").click()
    assert told.text.startswith(f"0 of {claims} claims shown; ")
    assert not any(table.is_displayed() for table in browser.all("details.all"))


def test_the_contents_lead_to_every_figure_by_its_question(browser: Browser, page: Path) -> None:
    browser.get(page.as_uri())
    links = browser.all(".contents a")
    words = [link.text for link in links]
    assert words[0] == "In short"
    assert words.index(SCENARIOS["maze"]) < words.index(FIGURES["figure1"].title)
    assert not set(words) & set(FIGURES)  # no code names
    link = browser.one(".contents a[href='#fetch']")
    link.click()
    browser.until(lambda: link.get_attribute("aria-current"))
    contents = browser.one(".contents").rect
    assert contents["y"] == browser.execute_script("return scrollY")  # they stay in sight
    figures = browser.execute_script("return document.querySelector('#question-0').offsetTop")
    claims = browser.execute_script("return document.querySelector('#claims').offsetTop")
    assert browser.one("#short").location["y"] < figures < claims
    assert len(browser.all("tr[data-verdict] a")) == len(browser.all("tr[data-verdict]"))
    missing = """return [...document.querySelectorAll("a[href^='#']")]
        .filter(link => !document.getElementById(link.hash.slice(1))).length"""
    assert browser.execute_script(missing) == 0


def test_controls_change_the_curves(browser: Browser, page: Path) -> None:
    browser.get(page.as_uri())
    figure = browser.show("figure1")

    def line() -> str:
        return str(browser.one(f"{figure} [data-method=count] .middle").get_attribute("d"))

    def ticks() -> list[str]:
        return [text.text for text in browser.all(f"{figure} .panel:first-child .axes text")]

    button = browser.one(f"{figure} button[data-method=shift]")
    assert len(browser.all(f"{figure} g[data-method=shift]")) == 2
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert not browser.all(f"{figure} g[data-method=shift]")
    button.send_keys(Keys.SPACE)
    assert len(browser.all(f"{figure} g[data-method=shift]")) == 2

    centre, band = (Select(s) for s in browser.all(f"{figure} .controls select"))
    lines = {line()}
    for name in ("median", "interquartile mean"):
        centre.select_by_visible_text(name)
        lines.add(line())
    assert len(lines) == 3
    bands = {browser.one(f"{figure} .band").get_attribute("d")}
    band.select_by_visible_text("quartiles of the seeds")
    bands.add(browser.one(f"{figure} .band").get_attribute("d"))
    assert len(bands) == 2
    band.select_by_visible_text("none")
    assert not browser.all(f"{figure} .band")

    log, single = browser.all(f"{figure} .controls input")
    before = line(), ticks()
    log.click()
    assert line() != before[0]
    assert ticks() != before[1]
    assert not browser.all(f"{figure} .seed")
    single.click()
    assert len(browser.all(f"{figure} [data-method=shift] .seed")) == 20  # ten in each panel


def test_a_step_is_read_by_pointer_and_by_keyboard(browser: Browser, page: Path) -> None:
    browser.get(page.as_uri())
    figure = browser.show("figure1")
    band = Select(browser.all(f"{figure} .controls select")[1])
    band.select_by_visible_text("quartiles of the seeds")
    plot = browser.one(f"{figure} .plot")
    reading = plot.find_element(By.CLASS_NAME, "reading")
    ActionChains(browser).move_to_element(plot).perform()
    assert "training episodes: 4" in reading.text
    plot.send_keys(Keys.END)
    mine = [
        curve.values
        for curve in read_results(ROOT / "results" / "figure1")
        if (curve.panel, curve.method) == ("success", "count")
    ]
    mean, low, high = (
        np.format_float_positional(value, precision=3, fractional=False, trim="-")
        for value in (np.mean(mine, axis=0)[-1], *np.quantile(mine, (0.25, 0.75), axis=0)[:, -1])
    )
    assert f"count bonus: {mean} [{low}, {high}], 10 seeds" in reading.text.splitlines()
    assert "training episodes: 1,000" in reading.text
    plot.send_keys(Keys.ARROW_LEFT)
    assert "training episodes: 990" in reading.text
    plot.send_keys(Keys.ESCAPE)
    assert not reading.is_displayed()


def test_a_table_holds_the_numbers_that_are_shown(browser: Browser, page: Path) -> None:
    browser.get(page.as_uri())
    figure = browser.show("figure1")
    browser.one(f"{figure} .chart summary").click()
    browser.until(lambda: browser.all(f"{figure} .wide td"))
    assert len(browser.all(f"{figure} .wide")) == 2
    assert len(browser.all(f"{figure} .wide:last-child thead th")) == 5
    browser.one(f"{figure} button[data-method=shift]").click()
    assert len(browser.all(f"{figure} .wide:last-child thead th")) == 4


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (1440, "dark"), (390, "light")])
def test_axe_finds_nothing(browser: Browser, page: Path, width: int, scheme: str) -> None:
    set_width(browser, width)
    browser.emulate(scheme=scheme)
    browser.get(page.as_uri())
    browser.show("fetch")
    unfold = (
        "document.querySelectorAll('nav, [aria-labelledby=short], #fetch, #terminal-treatment')"
    )
    browser.execute_script(
        f"for (const part of {unfold})"
        " for (const fold of part.querySelectorAll('details')) fold.open = true"
    )
    browser.until(lambda: browser.all("#fetch .wide td"))
    axe = Axe(browser)
    axe.inject()
    found = axe.run()["violations"]
    assert not found, axe.report(found)


def test_a_phone_need_not_scroll_text_sideways(browser: Browser, page: Path) -> None:
    set_width(browser, 390)
    browser.get(page.as_uri())
    browser.show("maze-sizes")
    assert browser.execute_script("return document.scrollingElement.scrollWidth") == 390
    assert not browser.one(".contents ul").is_displayed()  # they are folded, above the text
    browser.one(".contents summary").click()
    link = browser.one(".contents a[href='#fetch']")
    assert browser.one(".contents").rect["y"] == browser.execute_script("return scrollY")
    link.click()
    assert not link.is_displayed()
    picture = browser.one("#offline-mechanism .wide")  # moves alone, so that it can be read
    assert picture.rect["width"] < 390 < browser.one("#offline-mechanism .wide img").rect["width"]


def test_pictures_stand_in_for_print_and_without_scripts(browser: Browser, page: Path) -> None:
    browser.get(page.as_uri())
    assert not browser.one("#fetch .static").is_displayed()
    browser.emulate("print")
    assert browser.one("#fetch .static").is_displayed()
    assert not browser.one("#fetch .chart").is_displayed()
    words = browser.one("[aria-labelledby=short] dl")
    assert not words.is_displayed()
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert words.is_displayed()
    browser.emulate()
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(page.as_uri())
        assert browser.one("#fetch .static").is_displayed()
        assert "-1, 0 (default)" in str(browser.one("#fetch .static").get_attribute("alt"))
        assert not browser.one("#fetch .chart").is_displayed()
        assert not browser.one("form").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.fixture
def attacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The report on results and a figure that somebody else has written into."""
    figure = FIGURES["figure1"]
    panels = tuple(replace(panel, title=ATTACK) for panel in figure.panels)
    hostile = replace(figure, title=ATTACK, scenario=ATTACK, wording=ATTACK, panels=panels)
    monkeypatch.setitem(FIGURES, "figure1", hostile)
    folder = tmp_path / "figure1"
    shutil.copytree(ROOT / "results" / "figure1", folder)
    with (folder / "results.csv").open("a") as file:
        file.write(f'figure1,"{ATTACK}","{ATTACK}",0,0,1\n')
    provenance = json.loads((folder / "provenance.json").read_text())
    provenance |= {"note": ATTACK, ATTACK: ATTACK, "missing": [ATTACK], "command": ATTACK}
    write_provenance(folder, provenance)
    write_report(folder.parent)
    return folder.parent / "report.html"


def test_an_attack_is_text_in_the_page_and_in_the_picture(attacked: Path) -> None:
    text, picture = attacked.read_text(), (attacked.parent / "figure1" / "figure.svg").read_text()
    assert "&lt;script&gt;document.title" in text
    assert len(re.findall("<script", text)) == 2  # the page's own, and the numbers of the figure
    assert "<script" not in picture
    assert "<img src=x" not in text + picture


def test_a_browser_runs_nothing_of_an_attack(browser: Browser, attacked: Path) -> None:
    browser.get(attacked.as_uri())
    figure = browser.show("figure1")
    assert browser.title == "rewardshift: report"
    assert browser.one(f"{figure} .panel h4").text == ATTACK
    assert not browser.all("img[src=x]")
