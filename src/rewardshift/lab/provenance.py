"""The provenance of a result: versions, commit and machine."""

import contextlib
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path


def made_with() -> dict[str, str | None]:
    """The versions, the commit and the machine, on which results may depend."""
    packages = (
        *("rewardshift", "jax", "jaxlib", "optax", "numpy", "scipy", "minari"),
        *("gymnasium", "gymnasium-robotics", "minigrid", "mujoco"),
    )
    versions: dict[str, str | None] = dict.fromkeys(packages)
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # of another extra
            versions[package] = importlib.metadata.version(package)
    return {
        "commit": _commit(),
        "python": platform.python_version(),
        **versions,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def _commit() -> str | None:
    """The commit of this source, if it is a checkout, with a mark if the source is changed."""
    package = Path(__file__).parents[1]

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *arguments], cwd=package, capture_output=True, text=True, check=False
        )

    try:
        # Asks about this very file: an installed package may lie within another repository.
        if git("ls-files", "--error-unmatch", __file__).returncode:
            return None
        changed = git("diff", "--quiet", "HEAD", "--", str(package)).returncode
        return git("rev-parse", "HEAD").stdout.strip() + ("+changes" if changed else "")
    except OSError:  # no git here
        return None
