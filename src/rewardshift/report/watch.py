"""The page, served to this machine while runs go on.

The server answers two addresses, the page and its version. It never opens a file that a request
names, so no request leaves the folder. It answers GET and HEAD alone, and refuses requests whose
Host header is not its own address, so a foreign page cannot read it by DNS rebinding.
"""

import contextlib
import threading
from collections.abc import Iterator
from hashlib import sha256
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from rewardshift.errors import InputError, one_line
from rewardshift.files import DAMAGE
from rewardshift.lab.figure import Figure, duration
from rewardshift.lab.sweep.run import figures_in
from rewardshift.report import judged_folders
from rewardshift.report.curves import as_json
from rewardshift.report.live import CONFIG, Begun, Live, live_figure, live_run
from rewardshift.report.page import render_page

ADDRESS = "127.0.0.1"
FIRST_PORT, PORTS = 8765, 20  # the ports that are tried
SECONDS = 10  # a connection that says nothing for so long is closed
# The files that the page is made of, below a folder of results or a run.
SOURCES = (
    *("*/results.csv", "*/claims.json", "*/plan.json", "*/sweep.json", "*/units/*.json"),
    *("*/running/*/metrics.csv", "*/running/*/timing.csv", "*/running/*/*/metrics.csv"),
    *("*/running/*/*/timing.csv", "metrics.csv", "timing.csv", CONFIG),
)
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "frame-ancestors 'none'",
}


class Answer(NamedTuple):
    """The body of an answer, its type and its status."""

    body: bytes
    kind: str = "text/html; charset=utf-8"
    status: HTTPStatus = HTTPStatus.OK


class Watched:
    """The page of a folder, made again when its files have changed.

    Args:
        out: The folder of results, of a sweep or of a run.
    """

    def __init__(self, out: Path) -> None:
        if not out.is_dir():
            raise InputError(f"no folder {str(out)!r}")
        self.out = out
        self._lock = threading.Lock()
        self._version = ""
        self._answer = Answer(b"")

    def version(self) -> str:
        """A digest of the names, sizes and times of the files."""
        seen = []
        for pattern in SOURCES:
            for path in sorted(self.out.glob(pattern)):
                with contextlib.suppress(OSError):  # a unit has just been finished
                    known = path.lstat()
                    seen.append((str(path), known.st_size, known.st_mtime_ns))
        return sha256(repr(seen).encode()).hexdigest()[:16]

    def answer(self, path: str) -> Answer:
        """The answer to a request."""
        if path == "/version":
            return Answer(self.version().encode(), "text/plain; charset=utf-8")
        if path != "/":
            return Answer(b"not found\n", "text/plain; charset=utf-8", HTTPStatus.NOT_FOUND)
        with self._lock:
            version = self.version()
            if version != self._version:
                self._answer = self._make(version)
                self._version = version
            return self._answer

    def _make(self, version: str) -> Answer:
        try:
            return Answer(page_of(self.out, version).encode())
        except DAMAGE as error:  # InputError is one of them
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            return Answer(f"{one_line(error)}\n".encode(), "text/plain; charset=utf-8", status)


def page_of(out: Path, version: str = "") -> str:
    """The page about a folder and the work that goes on in it."""
    if (out / CONFIG).exists():
        return render_page([], {}, _sections([live_run(out)], version))
    figures = figures_in(out)
    judged = [folder for folder in judged_folders(out) if not folder.is_symlink()]
    found = [
        live for name in figures if (live := live_figure(out / name, figures[name])) is not None
    ]
    going = [live for live in found if not live.finished or _folder(out, live) not in judged]
    shown = figures if judged else _without_claims(figures, found)
    return render_page(judged, shown, _sections(going, version))


def _folder(out: Path, live: Live) -> Path:
    return out / live.figure.name


def _without_claims(figures: Any, found: list[Live]) -> dict[str, Figure]:
    """The figures at work: a page without results need not list all others."""
    names = {live.figure.name for live in found}
    return {name: figure for name, figure in figures.items() if name in names}


def _sections(going: list[Live], version: str) -> str:
    """The sections about work that goes on."""
    done, units = sum(live.done for live in going), sum(live.units for live in going)
    words = f"{done} of {units} units of work done" if going else "No work goes on here"
    known = [live.left for live in going if live.left is not None]
    left = f"; about {duration(sum(known))} left" if any(known) else ""
    rows = "".join(_row(live) for live in going)
    table = (
        '<div class="wide" tabindex="0" role="region" aria-label="Work that goes on">'
        "<table><caption>Work that goes on</caption><thead><tr>"
        '<th scope="col">figure</th><th scope="col">units done</th><th scope="col">begun</th>'
        f'<th scope="col">time left</th></tr></thead><tbody>{rows}</tbody></table></div>'
        if going
        else ""
    )
    return f"""<section id="live" aria-labelledby="live-title" data-version="{escape(version)}">
<h2 id="live-title">At work</h2>
<p role="status">{escape(words + left)}.</p>
{table}
</section>
{"".join(map(_curves, going))}"""


def _row(live: Live) -> str:
    begun = "<br>".join(escape(_said(one)) for one in live.begun) or "-"
    left = "unknown" if live.left is None else f"about {duration(live.left)}"
    return (
        f'<tr><th scope="row">{escape(live.figure.title)}</th>'
        f"<td>{live.done} of {live.units}</td><td>{begun}</td><td>{escape(left)}</td></tr>"
    )


def _said(begun: Begun) -> str:
    steps = f" of {begun.steps:,}" if begun.steps else ""
    return f"{begun.name}: step {begun.step:,}{steps}"


def _curves(live: Live) -> str:
    """The curves so far, if there are any."""
    name = f"{escape(live.figure.name)}-so-far"
    if not any(curve.values for curve in live.curves):
        return ""
    return f"""<section class="figure" id="{name}" aria-labelledby="{name}-title">
<h2 id="{name}-title">{escape(live.figure.title)}: so far</h2>
<div class="chart"></div>
<script type="application/json">{as_json(live.figure, live.curves)}</script>
</section>
"""


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    timeout = SECONDS
    server_version, sys_version = "rewardshift", ""
    server: "Server"

    def do_GET(self) -> None:
        """Sends the answer."""
        body = self._begin()
        self.wfile.write(body)

    def do_HEAD(self) -> None:
        """Sends the head of the answer."""
        self._begin()

    def _begin(self) -> bytes:
        if self.headers.get("Host") not in self.server.names:
            answer = Answer(
                b"ask for 127.0.0.1\n", "text/plain; charset=utf-8", HTTPStatus.FORBIDDEN
            )
        else:
            answer = self.server.watched.answer(self.path)
        self.send_response(answer.status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        return answer.body

    def log_message(self, *_: Any) -> None:
        """Keeps the terminal quiet."""


class Server(ThreadingHTTPServer):
    """The server of one folder, on this machine alone.

    Args:
        watched: The folder.
        port: The port. None takes the first free one of a few.
    """

    def __init__(self, watched: Watched, port: int | None = None) -> None:
        self.watched = watched
        ports = range(FIRST_PORT, FIRST_PORT + PORTS) if port is None else (port,)
        for number in ports:
            try:
                super().__init__((ADDRESS, number), Handler)
                break
            except (OSError, OverflowError) as error:
                last = error
        else:
            tried = f"{ports[0]}" if len(ports) == 1 else f"{ports[0]} to {ports[-1]}"
            raise InputError(f"no free port among {tried}: {one_line(last)}; choose one: --port")
        at = self.server_address[1]
        self.names = {f"{ADDRESS}:{at}", f"localhost:{at}"}

    @property
    def address(self) -> str:
        """The address for a browser."""
        return f"http://{ADDRESS}:{self.server_address[1]}/"


@contextlib.contextmanager
def serving(out: Path, port: int | None = None) -> Iterator[Server]:
    """Serves a folder's page from another thread."""
    with Server(Watched(out), port) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
