"""One episode of a trained run, as a film."""

import os
import warnings
from pathlib import Path
from typing import Any

import imageio.v3 as imageio
import numpy as np

from rewardshift.envs.tasks import env_maker, flatten
from rewardshift.errors import InputError, TrainingError, one_line
from rewardshift.extras import require
from rewardshift.files import writable_folder
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
    try:
        env = env_maker(policy.config.env, render_mode="rgb_array")()
        observation, _ = env.reset(seed=derive_seed(seed, 0, 1 + episode))
        frames: list[Any] = [env.render()]
    except Exception as error:  # of any graphics library, or of a task that draws nothing
        raise InputError(
            f"{policy.config.env} cannot be drawn here: {one_line(error)}. For MuJoCo, try"
            " MUJOCO_GL=egl or MUJOCO_GL=osmesa in the environment"
        ) from error
    total, done = 0.0, False
    while not done:
        if len(frames) > LONGEST_FILM:
            raise TrainingError(
                f"the episode has not ended in {LONGEST_FILM} steps, and all its pictures must fit"
                " into the memory; does the task need gymnasium.wrappers.TimeLimit?"
            )
        action = policy.act(flatten(observation, policy.spec))
        observation, reward, terminated, truncated, _ = env.step(action)
        frames.append(env.render())
        total, done = total + float(reward), terminated or truncated
    env.close()
    options: dict[str, Any] = (
        {"duration": 1000 / FRAMES_PER_SECOND, "loop": 0}
        if film.suffix == ".gif"
        else {"fps": FRAMES_PER_SECOND, "plugin": "FFMPEG"}
    )
    with warnings.catch_warnings():  # ffmpeg is forked, while nothing of JAX's is running
        warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
        imageio.imwrite(film, np.stack(frames), **options)
    return total
