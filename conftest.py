"""Every code block of the README, the docs and the docstrings is a test.

``python`` blocks share one namespace per page. A ``console`` block shows commands after
``$`` and what they print, which must be just that; a ``bash`` block only has to succeed.
All of a page's blocks run in a folder of its own that holds nothing but the examples.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from sybil import Example, Sybil
from sybil.parsers.myst import CodeBlockParser, PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser

ROOT = Path(__file__).parent

# What one test has compiled, no other compiles again, nor a command that a test starts, nor the
# next run of the tests. JAX knows the programs by their text, its own version and its flags.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".pytest_cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
# And what is compiled runs for milliseconds, so it need not be optimised. Half of what is left of
# compiling goes with XLA's newer emitters, and with parts that many threads would compile.
QUICK_TO_COMPILE = (
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",
)
os.environ.setdefault("XLA_FLAGS", " ".join(QUICK_TO_COMPILE))
# Torch's threads would only wait for each other over networks as small as those of tests.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The tests write thousands of small files and wait for the disk at each: where there is memory to
# spare, they go there.
MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


def make_folder(namespace: dict[str, Any]) -> None:
    folder = namespace["folder"] = Path(tempfile.mkdtemp())
    (folder / "examples").symlink_to(ROOT / "examples")
    os.chdir(folder)
    namespace["figures"] = set(import_module("rewardshift.lab").FIGURES)


def remove_folder(namespace: dict[str, Any]) -> None:
    os.chdir(ROOT)
    shutil.rmtree(namespace["folder"])
    lab = import_module("rewardshift.lab")
    for name in set(lab.FIGURES) - namespace["figures"]:  # those that the page has registered
        del lab.FIGURES[name], lab.MODULES[name]


def run(command: str, folder: Path) -> str:
    binaries = Path(sys.executable).parent
    result = subprocess.run(
        ["bash", "-ec", command],
        cwd=folder,
        env={**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result.stdout


def evaluate_bash(example: Example) -> None:
    run(example.parsed, example.namespace["folder"])


def evaluate_console(example: Example) -> None:
    for part in f"\n{example.parsed}".split("\n$ ")[1:]:
        command, _, expected = part.partition("\n")
        assert run(command, example.namespace["folder"]).rstrip() == expected.rstrip()


pages = Sybil(
    parsers=[
        SkipParser(),
        PythonCodeBlockParser(),
        CodeBlockParser("bash", evaluate_bash),
        CodeBlockParser("console", evaluate_console),
    ],
    patterns=["README.md", "docs/*.md"],
    setup=make_folder,
    teardown=remove_folder,
)
docstrings = Sybil(parsers=[DocTestParser()], patterns=["src/rewardshift/*.py", "src/**/*.py"])

pytest_collect_file = (pages + docstrings).pytest()
