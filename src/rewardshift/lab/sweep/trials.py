"""A sweep of a training of your own: a function that trains on the environment it is given."""

import contextlib
import importlib.util
import inspect
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from multiprocessing.reduction import ForkingPickler
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym

from rewardshift.auto import AUTO, Auto
from rewardshift.checks import Count, Discount, check, checked
from rewardshift.envs.tasks import MakeEnv, env_name, import_foreign, plain_env
from rewardshift.episodes import episode_steps
from rewardshift.errors import InputError, TrainingError, blaming, one_line, shown
from rewardshift.lab.figure import Curve, Figure, Unit
from rewardshift.lab.sweep.constants import Constant
from rewardshift.shift import Shift, Terminal
from rewardshift.training.evaluation import LONGEST_EPISODE, derive_seed
from rewardshift.wrappers import ShiftReward

TrialFunction = Callable[..., Any]
USUAL_GAMMA = 0.99


@dataclass(frozen=True)
class SweptTrial:
    """A trial, its environment, and what its shifts need to know about its agent.

    Args:
        name: The name of the trial, or its repr if it is an object.
        source: A digest of the source of a function, so that results of two versions do not mix.
            What it calls is not part of it.
        env: The name of the environment.
        gamma: The discount of the agent, for `"auto"` and for treatments other than `"zero"`.
        terminal: The treatment of terminal states by numbers; see `Shift`.
        evaluation_episodes: The greedy episodes for each policy that the trial hands over.
        function: The trial itself. Only a report can do without.
        make: The function that makes the environment, if it has no registered name.
    """

    name: str
    source: str | None
    env: str
    gamma: Discount
    terminal: Terminal
    evaluation_episodes: Count
    function: TrialFunction | None = field(default=None, compare=False, repr=False)
    make: MakeEnv | None = field(default=None, compare=False, repr=False)

    # What a figure asks of `SweptAgent`, too.
    budget: ClassVar[None] = None  # the trial's own
    seeds_together: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def of(
        cls,
        function: TrialFunction,
        env: str | MakeEnv | None,
        gamma: float | None = None,
        terminal: Terminal | None = None,
        evaluation_episodes: int | None = None,
    ) -> "SweptTrial":
        """The trial, checked; see `sweep`."""
        own = getattr(function, "gamma", None)
        if None not in (own, gamma) and own != gamma:
            raise InputError(f"the agent of the trial has gamma={own}, got gamma={gamma}")
        chosen = next((one for one in (gamma, own) if one is not None), USUAL_GAMMA)
        try:
            if isinstance(function, type):
                raise TypeError("it is a class")
            inspect.signature(function).bind("env", 0)
        except (TypeError, ValueError) as error:
            raise InputError(
                "a sweep takes an agent, such as DQN(), or a trial, a function of an environment"
                f" and a seed, got {shown(function)}: {one_line(error)}"
            ) from error
        source = None
        with contextlib.suppress(OSError, TypeError):  # an object, which its repr describes
            source = sha256(inspect.getsource(function).encode()).hexdigest()[:12]
        return cls(
            _importable("a trial", function).removeprefix("function "),
            source,
            env if isinstance(env, str) else _importable("a function that makes an", env),
            chosen,
            terminal or "zero",
            10 if evaluation_episodes is None else evaluation_episodes,
            function,
            None if isinstance(env, str) else env,
        )

    @property
    def task(self) -> str:
        """The environment."""
        return self.env

    def with_constant(self, constant: Constant) -> Shift | Auto | tuple[Shift, ...]:
        """The shift of the environment, or the shifts of the members of the trial's agent."""
        if isinstance(constant, tuple):
            return tuple(Shift(bias, gamma=self.gamma, terminal=self.terminal) for bias in constant)
        if constant == AUTO:
            return Auto() if self.terminal == Shift.terminal else Auto(terminal=self.terminal)
        return Shift(float(constant), gamma=self.gamma, terminal=self.terminal)

    def fits_rows(self, constants: Sequence[Constant]) -> bool:
        """False; raises if a trial would be refused."""
        assert self.function is not None
        takes_members = getattr(self.function, "takes_members", None)
        if takes_members is None:
            takes_members = "shifts" in inspect.signature(self.function).parameters
        for constant in constants:
            if isinstance(constant, tuple) and not takes_members:
                raise InputError(
                    "members need a trial whose agent applies the shifts itself, with a parameter"
                    f" called shifts: trial(env, seed, shifts), got {self.name}"
                )
            self._environment(self.with_constant(constant)).close()
        return False

    def _environment(self, shift: Shift | Auto | tuple[Shift, ...] | None) -> gym.Env[Any, Any]:
        """A new environment with this shift; members, and evaluations, have none around it."""
        env = plain_env(self.env if self.make is None else self.make)
        if isinstance(shift, Auto):
            return ShiftReward(env, shift, gamma=self.gamma)
        return ShiftReward(env, shift) if isinstance(shift, Shift) else env

    def run(self, figure: Figure, unit: Unit, folder: Path) -> list[Curve]:
        """One constant with one seed."""
        (name,), (seed,) = unit.methods, unit.seeds
        shift = next(method.agent for method in figure.methods if method.name == name)
        shifts = {"shifts": shift} if isinstance(shift, tuple) else {}
        function = self.function
        assert function is not None
        steps: list[int] = []
        values: list[float] = []
        what = f"the trial {self.name} with {name} and seed {seed}"
        with (
            contextlib.closing(self._environment(shift)) as env,
            blaming(what, (InputError, TrainingError)),
        ):
            for pair in function(env, seed, **shifts):
                step, found = _pair(pair)
                if steps and step <= steps[-1]:
                    raise TrainingError(f"{what} yielded step {step} after step {steps[-1]}")
                is_return = isinstance(found, Real)
                value = float(found) if is_return else self._evaluate(found, seed, step)
                if not math.isfinite(value):
                    raise TrainingError(f"{what} yielded the return {value} at step {step}")
                steps.append(step)
                values.append(value)
        if not steps:
            raise TrainingError(f"{what} yielded nothing; it must yield (step, policy)")
        return [Curve(figure.panels[0].name, name, seed, steps, values)]

    def _evaluate(self, policy: Any, seed: int, step: int) -> float:
        """The mean primal return of greedy episodes, whose starts depend on seed and step alone."""
        act = policy
        if hasattr(policy, "predict"):  # as models of Stable-Baselines3 have

            def act(observation: Any) -> Any:
                return policy.predict(observation, deterministic=True)[0]

        total = 0.0
        with contextlib.closing(self._environment(None)) as env:
            for number in range(1, 1 + self.evaluation_episodes):
                with blaming(f"the environment {self.env!r}, when reset,"):
                    first, _ = env.reset(seed=derive_seed(seed, step, number))
                taken = list(islice(episode_steps(env, act, first), LONGEST_EPISODE))
                if not (taken[-1].terminated or taken[-1].truncated):
                    raise TrainingError(
                        f"an episode of the evaluation at step {step} has not ended in"
                        f" {LONGEST_EPISODE} steps; does the task need gymnasium's TimeLimit?"
                    )
                total += sum(one.reward for one in taken)
        return total / self.evaluation_episodes


def _pair(pair: Any) -> tuple[int, Any]:
    """The step, and the policy or return, that a trial yielded."""
    if not (isinstance(pair, tuple) and len(pair) == 2):
        raise TrainingError(f"a trial yields (step, policy) or (step, return), got {shown(pair)}")
    step, found = pair
    if not (isinstance(found, Real) or callable(found) or hasattr(found, "predict")):
        raise TrainingError(
            "a trial yields a policy, which is a function of an observation or has predict, or a"
            f" return, got {shown(found)} at step {shown(step)}"
        )
    return checked("the step of a trial", Count, step), found


def _importable(what: str, function: Any) -> str:
    """The name of a function, or of an object by its repr, that other processes can import."""
    name = env_name(function)
    with contextlib.suppress(Exception):
        if "<lambda>" not in name and "<locals>" not in name and " at 0x" not in name:
            ForkingPickler.dumps(function)
            return name
    raise InputError(
        f"{what} must be found by other processes: define it at the top of a module or script, got"
        f" {shown(function)}"
    )


def load_trial(text: str) -> TrialFunction:
    """The trial that `FILE.py:NAME` names; raises ForeignError if the file fails."""
    file, _, name = text.rpartition(":")
    path = Path(file).resolve()
    if not path.is_file():
        raise InputError(f"no file {file!r} with a trial")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # last: no file here hides an installed module
    found = importlib.util.find_spec(path.stem) if path.stem.isidentifier() else None
    if found is None or found.origin is None or Path(found.origin).resolve() != path:
        raise InputError(
            f"the file of a trial is imported as {path.stem!r}, which is no name of its own for a"
            f" module: rename {file!r}"
        )
    import_foreign(path.stem)
    trial = getattr(sys.modules[path.stem], name, None)
    if trial is None:
        raise InputError(f"the file {file!r} has no trial called {name!r}")
    function: TrialFunction = trial
    return function
