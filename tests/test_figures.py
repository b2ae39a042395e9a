"""Declarations of figures: whole, readable, and known by what decides them."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift import DQN, MLP, RND, Shift
from rewardshift.errors import InputError
from rewardshift.lab import FIGURES, Budget, Method, Task, budget_lifetimes, find_figure
from rewardshift.lab.figure import SCENARIOS
from rewardshift.lab.trainings import agent_for
from rewardshift.report.statistics import MIN_SEEDS

figures = pytest.mark.parametrize("name", FIGURES)


@figures
def test_every_declaration_is_whole(name: str) -> None:
    figure = FIGURES[name]
    assert set(figure.presets) == {"smoke", "quick", "paper"}
    assert [p.decides for p in figure.presets.values()] == [False, True, True]
    assert figure.presets["paper"].note == ""
    assert figure.presets["smoke"].note != ""
    assert len({method.style.color for method in figure.methods if method.style}) == len(
        figure.methods
    )
    assert figure.scenario in SCENARIOS
    assert figure.wording or all(claim.source == "ours" for claim in figure.claims)
    assert figure.differs or not figure.wording or figure.scenario == "maze"
    panels = {panel.name: panel for panel in figure.panels}
    assert len(panels) == len(figure.panels)
    for preset in figure.presets.values():
        assert preset.seeds >= MIN_SEEDS or not preset.decides
    for claim in figure.claims:  # `register` has checked their names
        assert claim.better != claim.worse
        assert panels[claim.panel].shows(claim.better)
        assert claim.worse is None or panels[claim.panel].shows(claim.worse)
        assert claim.alike is None or 0 < claim.alike < 1
        assert claim.bound is None or (claim.bound > 0 and claim.alike is None)


@figures
@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_a_claim_about_the_end_has_five_lifetimes(name: str, preset: str) -> None:
    figure = FIGURES[name]
    tasks = {panel.name: panel.task for panel in figure.panels}
    for claim in figure.claims:
        count = budget_lifetimes(figure, tasks[claim.panel], preset)
        assert claim.metric not in ("final", "drop") or count is None or count >= 5


def luminance(color: str) -> float:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return (0.299 * red + 0.587 * green + 0.114 * blue) / 255


@pytest.mark.parametrize("name", sorted(set(FIGURES) - {"curiosity-ablation"}))  # nine lines
def test_a_figure_can_be_read_in_grey(name: str) -> None:
    """Lines of the same dashes must differ in lightness."""
    styles = [FIGURES[name].style(method) for method in FIGURES[name].methods]
    for a, b in combinations(styles, 2):
        assert a.line != b.line or abs(luminance(a.color) - luminance(b.color)) > 0.1


def test_the_digest_follows_what_decides_the_curves_and_nothing_else() -> None:
    figure = FIGURES["figure1"]
    (group,) = figure.groups
    digest = figure.digest("paper", "zero", group)
    assert digest == replace(figure, title="another", claims=()).digest("paper", "zero", group)
    assert digest == figure.digest("quick", "zero", group)  # the same budget, only fewer seeds
    count = figure.methods[1]
    louder = replace(count, agent=replace(count.agent, agent=replace(count.agent.agent, bonus=0.2)))
    sizes = FIGURES["maze-sizes"]
    others = {
        figure.digest("smoke", "zero", group),
        figure.digest("paper", "absorbing", group),
        figure.digest("paper", "zero", (group[0], group[1][:2])),
        replace(figure, methods=(figure.methods[0], louder)).digest("paper", "zero", group),
        sizes.digest("paper", "zero", sizes.groups[0]),
    }
    assert len(others | {digest}) == 6


def test_groups_take_axes_whole_or_one_by_one() -> None:
    figure = replace(FIGURES["maze-sizes"], unit_spans=("task",))
    tasks = ("S2", "S5", "S10", "S15", "S20")
    names = ("epsilon-greedy", "count", "count-evaluated-first", "shift")
    assert figure.groups == [(tasks, (name,)) for name in names]
    assert len(replace(figure, unit_spans=()).groups) == 20


def test_a_method_that_no_panel_of_a_task_shows_is_not_run_there() -> None:
    groups = FIGURES["offline"].at("quick").groups
    assert (("BCQ-hopper-medium",), ("positive-absorbing",)) in groups
    assert (("BCQ-hopper-imitate",), ("positive-absorbing",)) not in groups
    assert len(groups) == 7


@figures
def test_budgets_are_told_in_lifetimes(name: str) -> None:
    figure = FIGURES[name].at("quick")
    quick = {task: budget_lifetimes(figure, task, "quick") for task in figure.tasks}
    tables = name in ("figure1", "maze-sizes", "terminal-treatment")
    assert {count is None for count in quick.values()} == {tables}
    known = {"fetch": 0.4, "sparse-cheetah": 75 / 40, "offline": 6.0, "offline-mechanism": 10.0}
    if name in known:
        assert quick == pytest.approx(dict.fromkeys(figure.tasks, known[name]))
    if name == "curiosity":
        assert (quick["MultiRoom"], quick["MountainCar"]) == pytest.approx((40.0, 500.0))


def test_an_unknown_figure_is_refused_with_a_hint() -> None:
    with pytest.raises(InputError, match="did you mean 'maze-sizes'"):
        find_figure("maze-size")
    with pytest.raises(InputError, match="there are: figure1, maze-sizes, terminal-treatment"):
        find_figure("../elsewhere")


def test_settings_of_the_task_and_the_budget_reach_the_agent() -> None:
    task = Task("CartPole-v1", settings={"gamma": 0.5}, methods={"own": {"gamma": 0.7}})
    budget = Budget(100, settings={"network.hidden": (8,), "intrinsic.width": 4})
    plain, curious = DQN(shift=-1.0), DQN(intrinsic=RND())
    agent = agent_for(Method("a", "a", plain), task, budget, "absorbing")
    assert agent == DQN(
        shift=Shift(-1.0, terminal="absorbing"), gamma=0.5, network=MLP((8,))
    )  # it has no intrinsic reward, so that setting is not for it
    assert agent_for(Method("b", "b", curious), task, budget).intrinsic.width == 4  # type: ignore[attr-defined]
    assert agent_for(Method("own", "own"), replace(task, agent=plain), budget).gamma == 0.7
    with pytest.raises(InputError, match="DQN has no setting called 'batchsize'"):
        agent_for(Method("a", "a", plain), task, Budget(100, settings={"batchsize": 4}))


@pytest.mark.parametrize("shift", ["auto", Shift(8.0, terminal="absorbing")])
def test_a_treatment_of_its_own_stays(shift: Any) -> None:
    agent = DQN(shift=shift)
    assert agent_for(Method("a", "a", agent), Task("CartPole-v1"), Budget(1), "zero") == agent


def test_a_digest_follows_the_budgets_of_its_tasks_alone() -> None:
    figure = FIGURES["auto"]
    quick = figure.presets["quick"]
    longer = {**quick.budget, "Acrobot": replace(quick.budget["Acrobot"], steps=50_000)}
    other = replace(figure, presets={"quick": replace(quick, budget=longer)})
    changed = {
        group[0][0]
        for group in figure.groups
        if figure.digest("quick", "zero", group) != other.digest("quick", "zero", group)
    }
    assert changed == {"Acrobot"}
