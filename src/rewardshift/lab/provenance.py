"""The provenance of a result: versions, commit and machine."""

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
    return {
        "commit": _commit(),
        "python": platform.python_version(),
        **{package: _version(package) for package in packages},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None  # an extra that is not installed


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
