"""The files in dist/ as a release: `make release-check` builds them and runs this.

They are installed into empty environments and used there, with every Python on the path that the
project supports.
"""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from test_install import PLUG_IN, ROOT, SB3, TORCH, install, run

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DIST = ROOT / "dist"
TRAIN = "train dqn --env CartPole-v1 --steps 40 --evaluate-every 20 --out run"


def interpreters() -> list[str]:
    """The supported Pythons on the path that start; a shim of a version manager may not."""
    names = [sys.executable if name == HERE else shutil.which(f"python{name}") for name in VERSIONS]
    found = [name for name in names if name is not None]
    return [name for name in found if not subprocess.run([name, "-c", ""], check=False).returncode]


@pytest.fixture(params=interpreters())
def python(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def only(pattern: str) -> Path:
    (found,) = DIST.glob(pattern)
    return found


def test_the_files_are_named_after_the_version() -> None:
    names = {path.name for path in DIST.iterdir()}
    stem = f"rewardshift-{PROJECT['version']}"
    assert names == {f"{stem}.tar.gz", f"{stem}-py3-none-any.whl"}


def test_the_version_is_semantic_and_has_its_changes() -> None:
    version = PROJECT["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert f'version: "{version}"' in (ROOT / "CITATION.cff").read_text()
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_wheel_is_the_package_and_nothing_else() -> None:
    with zipfile.ZipFile(only("*.whl")) as wheel:
        inside = set(wheel.namelist())
    source = ROOT / "src"
    kept = subprocess.run(
        ["git", "ls-files", "src"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    assert {name for name in inside if ".dist-info/" not in name} == {
        str((ROOT / name).relative_to(source)) for name in kept
    }


def test_the_sdist_has_what_a_reader_needs() -> None:
    with tarfile.open(only("*.tar.gz")) as sdist:
        inside = {name.partition("/")[2] for name in sdist.getnames()}
    for name in ("LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "SECURITY.md", "Makefile"):
        assert name in inside
    for folder in ("src/rewardshift", "tests", "docs", "results/figure1"):
        assert any(name.startswith(f"{folder}/") for name in inside)


@pytest.mark.parametrize("file", ["*.whl", "*.tar.gz"])
def test_the_plug_in(file: str, python: str, tmp_path: Path) -> None:
    commands = install(only(file), "", tmp_path / "env", python)
    run(commands / "python", "-I", "-W", "error", "-c", PLUG_IN, folder=tmp_path)


def test_the_agents(python: str, tmp_path: Path) -> None:
    commands = install(only("*.whl"), "[agents]", tmp_path / "env", python)
    run(commands / "rewardshift", *TRAIN.split(), folder=tmp_path)
    assert "mean return" in run(commands / "rewardshift", "evaluate", "run", folder=tmp_path)


def test_everything(python: str, tmp_path: Path) -> None:
    commands = install(only("*.whl"), "[all]", tmp_path / "env", python)
    for code in (PLUG_IN, TORCH, SB3):
        run(commands / "python", "-I", "-c", code, folder=tmp_path)
    figure = ("reproduce", "figure1", "--preset", "smoke", "--jobs", "1")
    run(commands / "rewardshift", *figure, folder=tmp_path)
    run(commands / "rewardshift", "report", "out", folder=tmp_path)
    assert (tmp_path / "out" / "report.html").is_file()
