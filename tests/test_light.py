"""What an import loads, and when a shift is a pytree: each in a process of its own."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import rewardshift
from rewardshift import errors

HEAVY = (
    *("jax", "jaxtyping", "optax", "scipy", "matplotlib", "minigrid", "pygame", "mujoco", "minari"),
    *("h5py", "imageio", "jinja2", "tensorboardX", "tyro", "rich"),
    *("torch", "stable_baselines3", "d3rlpy", "ray"),
)
SOURCE = Path(rewardshift.__file__)


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def loaded(statement: str) -> set[str]:
    """The heavy packages that are loaded after a statement."""
    return set(run(f"import sys; {statement}; print(*set(sys.modules) & {{*{HEAVY}}})").split())


@pytest.mark.parametrize(
    "statement",
    [
        "import rewardshift",
        "from rewardshift import Shift, ShiftReward, VectorShiftReward, suggest_shift",
        "import rewardshift; dir(rewardshift); rewardshift.__version__",
        "import rewardshift.cli",
        "import rewardshift.doctor",
        "import rewardshift, gymnasium; gymnasium.make('rewardshift/BitFlip-v0')",
    ],
)
def test_the_core_loads_nothing_heavy(statement: str) -> None:
    assert loaded(statement) == set()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("rewardshift.integrations.sb3", "stable_baselines3"),
        ("rewardshift.integrations.sb3_doctor", "stable_baselines3"),
        ("rewardshift.integrations.minari", "minari"),
    ],
)
def test_an_integration_loads_what_its_library_loads(ours: str, theirs: str) -> None:
    assert loaded(f"import {ours}") == loaded(f"import {theirs}")


def test_training_loads_no_matplotlib_no_torch_and_no_ray() -> None:
    assert "matplotlib" not in loaded("from rewardshift import DQN, train")
    commands = loaded("import rewardshift.cli.train, rewardshift.cli.reproduce")
    assert commands.isdisjoint({"matplotlib", "torch", "ray"})


def test_every_lazy_name_is_an_import_of_the_type_checkers() -> None:
    tree = ast.parse(SOURCE.read_text())
    (block,) = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    checked = {
        name.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert {name: f"rewardshift.{module}" for name, module in rewardshift._LAZY.items()} == checked


def test_every_public_name_is_there() -> None:
    assert set(rewardshift.__all__) <= set(dir(rewardshift))
    for name in rewardshift.__all__:
        assert getattr(rewardshift, name).__module__.startswith("rewardshift.")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        getattr(rewardshift, "nonsense")  # noqa: B009  mypy would refuse it


def test_the_version_is_that_of_the_package() -> None:
    command = [sys.executable, "-m", "pip", "show", "rewardshift"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"Version: {rewardshift.__version__}\n" in shown


PYTREE = """
leaves, tree = jax.tree.flatten(Shift(-0.5, gamma=0.9))
assert leaves == [-0.5, 1.0, 0.9], leaves
assert jax.jit(lambda shift, reward: shift.reward(reward))(Shift(-0.5), 1.0) == 0.5
"""


@pytest.mark.parametrize(
    "imports",
    [
        "import jax; from rewardshift import Shift",
        "from rewardshift import Shift, register_pytree; import jax; register_pytree()",
        "from rewardshift import Shift; import jax; import rewardshift.agents",
        "import jax; from rewardshift import *; register_pytree(); register_pytree()",
    ],
)
def test_a_shift_is_a_pytree_in_either_order_of_imports(imports: str) -> None:
    run(f"{imports}\n{PYTREE}")


@pytest.mark.parametrize(
    ("package", "statement", "extra"),
    [
        ("jax", "from rewardshift import DQN", "agents"),
        ("jax", "import rewardshift.training.runs", "agents"),
        ("jax", "import rewardshift.envs.tabular", "agents"),
        ("jaxtyping", "import rewardshift.data", "agents"),
        ("minigrid", "import rewardshift.envs.minigrid", "agents"),
        ("matplotlib", "import rewardshift.report", "paper"),
        ("minari", "import rewardshift.integrations.minari", "minari"),
        ("stable_baselines3", "import rewardshift.integrations.sb3", "sb3"),
        ("stable_baselines3", "import rewardshift.integrations.sb3_doctor", "sb3"),
        ("matplotlib", "import rewardshift.doctor.picture", "paper"),
    ],
)
def test_what_is_missing_is_said_with_its_extra(package: str, statement: str, extra: str) -> None:
    code = f"""
import sys
sys.modules[{package!r}] = None
try:
    {statement}
except ImportError as error:
    print(error)
"""
    assert run(code) == (
        f"this needs {package}, which is not installed: add the extra '{extra}', as in"
        f" pip install '.[{extra}]' in a clone of rewardshift"
    )


def test_a_missing_extra_is_bad_input_and_a_failed_import() -> None:
    with pytest.raises(rewardshift.InputError, match=r"pip install '\.\[some\]'"):
        errors.require("no_such_package", "some")
    with pytest.raises(ImportError), errors.needs("some"):
        importlib.import_module("no_such_package")
