"""One episode of a trained run, as a film."""

import importlib.util
import warnings
from pathlib import Path
from typing import Any

import imageio.v3 as imageio
import jax
import numpy as np

from rewardshift.envs.engines import env_maker, flatten, task_spec
from rewardshift.errors import InputError
from rewardshift.training.checkpoints import read_npz
from rewardshift.training.config import networks_of, read_config
from rewardshift.training.evaluation import derive_seed

FRAMES_PER_SECOND = 15


def record_episode(folder: Path, film: Path, seed: int, episode: int) -> float:
    """Plays a greedy episode of a finished run into a GIF or MP4.

    Args:
        folder: Of the run.
        film: The file to make; its ending says which kind.
        seed: Which of the run's seeds acts.
        episode: Another number is another start.

    Returns:
        The primal return of the episode.
    """
    config = read_config(folder)
    if seed not in config.seeds:
        raise InputError(f"the run has the seeds {list(config.seeds)}, not {seed}")
    if film.suffix not in (".gif", ".mp4"):
        raise InputError(f"the film must end in .gif or .mp4, got {str(film)!r}")
    if film.suffix == ".mp4" and importlib.util.find_spec("imageio_ffmpeg") is None:
        raise InputError("an MP4 needs ffmpeg: pip install 'rewardshift[video]', or make a GIF")
    if not (folder / "parameters.npz").exists():
        raise InputError(f"the run in {str(folder)!r} is not finished: rewardshift resume {folder}")
    env = env_maker(config.env, render_mode="rgb_array")()
    spec = task_spec(env)
    keys = jax.vmap(jax.random.key)(np.asarray(config.seeds))
    states = jax.vmap(lambda key: config.agent.init(key, spec))(keys)
    path = folder / "parameters.npz"
    try:
        states = states._replace(**read_npz(path, networks_of(config.agent, states)))
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)!r} cannot be used: {error}") from error
    state = jax.tree.map(lambda leaf: leaf[config.seeds.index(seed)], states)
    act = jax.jit(lambda observation: config.agent.greedy(state, observation))

    observation, _ = env.reset(seed=derive_seed(seed, 0, 1 + episode))
    frames, total, done = [env.render()], 0.0, False
    while not done:
        action = np.asarray(act(flatten(observation, spec)))[()]  # a scalar where it is one
        observation, reward, terminated, truncated, _ = env.step(action)
        frames.append(env.render())
        total, done = total + float(reward), terminated or truncated
    env.close()
    film.parent.mkdir(parents=True, exist_ok=True)
    options: dict[str, Any] = (
        {"duration": 1000 / FRAMES_PER_SECOND, "loop": 0}
        if film.suffix == ".gif"
        else {"fps": FRAMES_PER_SECOND, "plugin": "FFMPEG"}
    )
    with warnings.catch_warnings():  # ffmpeg is forked, while nothing of JAX's is running
        warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
        imageio.imwrite(film, np.stack(frames), **options)  # type: ignore[arg-type]
    return total
