"""The rules of docs/design.md that a machine can check."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "rewardshift"
DESIGN = (ROOT / "docs" / "design.md").read_text()
ROOM = re.compile(r"^  (\w+)(?:\.py|/)", re.M)
ROOMS = ROOM.findall(DESIGN)
CORE = ROOM.findall(DESIGN.split("(core:")[1].split("(extra:")[0])
FILES = sorted(SOURCE.rglob("*.py"))


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def imports(tree: ast.AST) -> set[str]:
    return {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)} | {
        name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }


def our_imports(path: Path) -> set[str]:
    modules = imports(ast.parse(path.read_text()))
    return {module for module in modules if module.split(".")[0] == "rewardshift"}


def test_the_design_names_every_room() -> None:
    rooms = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in FILES}
    assert rooms - {"__init__"} == set(ROOMS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_upwards(path: Path) -> None:
    here = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    order = [*ROOMS[:-1], "__init__", ROOMS[-1]]  # the package offers all rooms but the command
    for module in our_imports(path):
        assert order.index(room(module)) <= order.index(here), f"{path} imports {module}"


@pytest.mark.parametrize("name", sorted(CORE))
def test_the_core_imports_nothing_but_numpy_and_gymnasium(name: str) -> None:
    """A module in a folder may need an extra, which it names: `with needs("sb3"): import ...`."""
    folder = SOURCE / name
    for path in folder.glob("*.py") if folder.is_dir() else [SOURCE / f"{name}.py"]:
        later = (ast.FunctionDef, ast.With) if folder.is_dir() else ast.FunctionDef
        at_import = [
            node for node in ast.parse(path.read_text()).body if not isinstance(node, later)
        ]
        packages = {module.split(".")[0] for node in at_import for module in imports(node)}
        assert packages - sys.stdlib_module_names <= {"numpy", "gymnasium", "rewardshift"}, path


def test_nothing_reads_or_writes_pickles() -> None:
    for path in [*FILES, *(ROOT / "examples").glob("*.py"), *(ROOT / "benchmarks").glob("*.py")]:
        assert not re.search(
            r"\b(import|from) (pickle|cloudpickle|dill|joblib)\b|allow_pickle=True",
            path.read_text(),
        ), path
