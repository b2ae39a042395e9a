"""One episode of a trained run, as a film."""

import os
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import imageio.v3 as imageio
import numpy as np

from rewardshift.envs.tasks import env_maker, flatten
from rewardshift.errors import FOREIGN, InputError, TrainingError, failed, one_line, shown
from rewardshift.extras import require
from rewardshift.files import writable_folder, write_atomic
from rewardshift.rollout.seeding import derive_seed
from rewardshift.training.policy import load_policy

FRAMES_PER_SECOND = 15
LONGEST_FILM = 5_000  # steps


def record_episode(folder: Path, film: Path, seed: int, episode: int) -> float:
    """Plays a greedy episode of a run into a GIF or MP4.

    Args:
        folder: The run's folder.
        film: The file to make; its ending says which kind.
        seed: Which of the run's seeds acts.
        episode: Another number is another start.

    Returns:
        The primal return of the episode.
    """
    if film.suffix not in (".gif", ".mp4"):
        raise InputError(f"the film must end in .gif or .mp4, got {str(film)!r}")
    if film.suffix == ".mp4":
        require("imageio_ffmpeg", "video")
    if film.is_dir():
        raise InputError(f"the film {str(film)!r} is a folder; name a file")
    if episode < 0:
        raise InputError(f"episode must be 0 or more, got {episode}")
    policy = load_policy(folder, seed)
    writable_folder(film.parent)
    if not {"MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
        os.environ["MUJOCO_GL"] = "egl"  # MuJoCo's own choice needs a screen
    env = _drawn_env(policy.config.env)
    try:
        observation, _ = env.reset(seed=derive_seed(seed, 0, 1 + episode))
        frames: list[Any] = [_picture(env)]
    except Exception as error:  # of any graphics library, or of a task that draws nothing
        hint = (
            "; for MuJoCo, try MUJOCO_GL=egl or MUJOCO_GL=osmesa in the environment"
            if hasattr(env.unwrapped, "mujoco_renderer")
            else ""
        )
        raise InputError(
            f"{policy.config.env} cannot be drawn here: {one_line(error)}{hint}"
        ) from error
    total, done = 0.0, False
    while not done:
        if len(frames) > LONGEST_FILM:
            raise TrainingError(
                f"the episode has not ended in {LONGEST_FILM} steps, and all its pictures must fit"
                " into the memory; does the task need gymnasium.wrappers.TimeLimit?"
            )
        action = policy.act(flatten(observation, policy.spec))
        try:
            observation, reward, terminated, truncated, _ = env.step(action)
            frames.append(_picture(env))
        except FOREIGN as error:
            raise failed(f"the environment {env}, in step {len(frames)},", error) from error
        total, done = total + float(reward), terminated or truncated
    env.close()
    options: dict[str, Any] = (
        {"duration": 1000 / FRAMES_PER_SECOND, "loop": 0}
        if film.suffix == ".gif"
        else {"fps": FRAMES_PER_SECOND, "plugin": "FFMPEG"}
    )
    with warnings.catch_warnings():  # ffmpeg is forked, while nothing of JAX's is running
        warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
        content = imageio.imwrite("<bytes>", np.stack(frames), extension=film.suffix, **options)
    write_atomic(film, content)
    return total


def _drawn_env(env: str) -> gym.Env[Any, Any]:
    """The environment, if it says that it can be drawn."""
    with warnings.catch_warnings():  # Gymnasium warns of what is refused below
        warnings.simplefilter("ignore")
        made = env_maker(env, render_mode="rgb_array")()
    modes = list(made.metadata.get("render_modes", ()))
    if "rgb_array" not in modes:
        raise InputError(
            f"a film needs an environment with the render mode 'rgb_array'; {env} has"
            f" {shown(modes) if modes else 'none'}"
        )
    return made


def _picture(env: gym.Env[Any, Any]) -> np.ndarray:
    picture = env.render()
    if not isinstance(picture, np.ndarray):
        raise TypeError(f"its render() returned {shown(picture)}, not a picture")
    return picture
