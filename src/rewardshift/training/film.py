"""Records an episode of a trained run as a film."""

import os
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import imageio.v3 as imageio
import numpy as np

from rewardshift.checks import Natural, checked
from rewardshift.envs.tasks import env_maker, flatten
from rewardshift.episodes import episode_steps
from rewardshift.errors import InputError, TrainingError, blaming, one_line, shown
from rewardshift.files import writable_folder, write_atomic
from rewardshift.training.evaluation import derive_seed
from rewardshift.training.policy import Policy

FRAMES_PER_SECOND = 15
LONGEST_FILM = 5_000  # steps


def record_episode(policy: Policy, film: Path, episode: int) -> float:
    """Records a greedy episode of a policy as a GIF.

    Args:
        policy: The policy.
        film: The file to write.
        episode: The number of the episode; each number has another start.

    Returns:
        The primal return of the episode.
    """
    if film.suffix != ".gif":
        raise InputError(f"the film must end in .gif, got {str(film)!r}")
    checked("episode", Natural, episode)
    writable_folder(film.parent)
    if not {"MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
        os.environ["MUJOCO_GL"] = "egl"  # MuJoCo's own choice needs a screen
    with warnings.catch_warnings():  # of Gymnasium, about an environment that `_picture` refuses
        warnings.simplefilter("ignore")
        env = env_maker(policy.env, render_mode="rgb_array")()
    with blaming(f"the environment {env}, when reset,"):
        first, _ = env.reset(seed=derive_seed(policy.seed, 0, 1 + episode))
    frames = [_picture(env)]
    total = 0.0
    for moment in episode_steps(env, policy.greedy, first, partial(flatten, spec=policy.spec)):
        total += moment.reward
        frames.append(_picture(env))
        if len(frames) > LONGEST_FILM:
            raise TrainingError(
                f"the episode has not ended in {LONGEST_FILM} steps, and all its pictures must fit"
                " into the memory; does the task need gymnasium.wrappers.TimeLimit?"
            )
    env.close()
    duration = 1000 / FRAMES_PER_SECOND
    write_atomic(
        film,
        imageio.imwrite("<bytes>", np.stack(frames), extension=".gif", duration=duration, loop=0),
    )
    return total


def _picture(env: gym.Env[Any, Any]) -> np.ndarray:
    """A picture of the environment now; refused if it draws none."""
    try:
        picture = env.render()
        if not isinstance(picture, np.ndarray):
            raise TypeError(f"its render() returned {shown(picture)}, not a picture")
    except (Exception, SystemExit) as error:  # of a graphics library, or of the task
        hint = (
            "; for MuJoCo, try MUJOCO_GL=egl or MUJOCO_GL=osmesa in the environment"
            if hasattr(env.unwrapped, "mujoco_renderer")
            else ""
        )
        raise InputError(f"{env} cannot be drawn here: {one_line(error)}{hint}") from error
    return picture
