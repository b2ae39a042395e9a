"""The look of all pictures, and pictures as files whose bytes can be reproduced."""

import contextlib
import io
import re
import warnings
from collections.abc import Iterator
from typing import Any

from rewardshift.errors import needs

WIDTH = 7.0  # inches: that of the text in the docs, so that letters have one height everywhere
TEXT = 9  # points
BLUE, ORANGE, GREEN, GREY = "#2171b5", "#d94801", "#238b45", "#525252"

_LOOK: dict[Any, Any] = {
    "text.parse_math": False,  # a dollar in a name starts no formula
    "font.size": TEXT,
    "axes.titlesize": TEXT,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.fontsize": TEXT,
    "legend.title_fontsize": TEXT,
    "legend.frameon": False,
    "figure.titlesize": TEXT + 1,
    "figure.titleweight": "bold",
    "savefig.dpi": 150,
}


@contextlib.contextmanager
def drawing(salt: str = "") -> Iterator[None]:
    """Gives what is drawn within it the common look.

    Args:
        salt: A name, from which an SVG makes its ids.
    """
    with needs("paper"):
        import matplotlib  # noqa: PLC0415  the core does without
    look = matplotlib.rc_context(_LOOK | {"svg.hashsalt": salt})
    with look, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # a name that the font lacks
        yield


def as_file(canvas: Any, kind: str = "png") -> bytes:
    """A Matplotlib figure as a file of this kind, without a date: its bytes are reproducible."""
    buffer = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
    canvas.savefig(buffer, format=kind, metadata=metadata)
    return _compact(buffer.getvalue()) if kind == "svg" else buffer.getvalue()


def _compact(svg: bytes) -> bytes:
    """An SVG with paths rounded to a tenth of a point, and without indents: a quarter smaller."""
    path, number = re.compile(rb'<path[^>]* d="[^"]*"'), re.compile(rb"-?\d+\.\d+")

    def rounded(found: re.Match[bytes]) -> bytes:
        return f"{float(found[0]):.1f}".removesuffix(".0").encode()

    return re.sub(rb"\n +", b"\n", path.sub(lambda found: number.sub(rounded, found[0]), svg))
