"""The rules of docs/design.md that a machine can check."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "rewardshift"
ROOMS = re.findall(r"^  (\w+)(?:\.py|/)", (ROOT / "docs" / "design.md").read_text(), re.M)
FILES = sorted(SOURCE.rglob("*.py"))


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def our_imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)} | {
        name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    return {module for module in modules if module.split(".")[0] == "rewardshift"}


def test_the_design_names_every_room() -> None:
    rooms = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in FILES}
    assert rooms - {"__init__"} == set(ROOMS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_upwards(path: Path) -> None:
    here = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if here == "__init__":
        return
    for module in our_imports(path):
        assert ROOMS.index(room(module)) <= ROOMS.index(here), f"{path} imports {module}"


def test_nothing_reads_or_writes_pickles() -> None:
    for path in [*FILES, *(ROOT / "examples").glob("*.py"), *(ROOT / "benchmarks").glob("*.py")]:
        assert not re.search(
            r"\b(import|from) (pickle|cloudpickle|dill|joblib)\b|allow_pickle=True",
            path.read_text(),
        ), path
