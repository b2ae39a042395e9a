"""The help of every command for commands.md, asked of the commands when the docs are built."""

import io
import os
import re
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from textwrap import fill
from unittest.mock import patch

from sphinx.application import Sphinx

from rewardshift.cli import COMMANDS, main

WIDTH = 80
MARK = "<!-- help of all commands -->"
SUBCOMMAND = re.compile(r"^ +• (\S+)", re.MULTILINE)


def command_reference() -> str:
    """A section for each command, with what `--help` prints; that of its subcommands is folded."""
    with patch.dict(os.environ, COLUMNS=str(WIDTH)):
        return "\n".join(part for name in COMMANDS for part in _sections(name))


def _sections(name: str) -> Iterator[str]:
    text = _help(name)
    yield f"## {name}\n\n{_block(text)}"
    for subcommand in SUBCOMMAND.findall(text):
        folded = _block(_help(name, subcommand))
        title = f"<code>rewardshift {name} {subcommand} --help</code>"
        yield f"<details><summary>{title}</summary>\n\n{folded}\n</details>\n"


def _help(*command: str) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed), suppress(SystemExit):
        main([*command, "--help"])
    lines = [line.rstrip() for line in printed.getvalue().strip().splitlines()]
    return "\n".join(line if len(line) <= WIDTH else fill(line, WIDTH) for line in lines)


def _block(text: str) -> str:
    return f"```text\n{text}\n```\n"


def fill_page(_app: Sphinx, page: str, source: list[str]) -> None:
    if page == "commands":
        source[0] = source[0].replace(MARK, command_reference())


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", fill_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
