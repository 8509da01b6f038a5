"""Other comment services with the same comments, as their documentation runs them.

The folder in PEERS contains their programs (benchmarks/README.md says how to install them). A
service without a program is left out. Each runs on a new data file that this module fills with SQL,
because posting 315 comments meets the services' limits.
"""

import contextlib
import gzip
import os
import shutil
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

import flask

from benchmarks.serving import gunicorn_process
from benchmarks.widget import host_pages
from benchmarks.widget.sample_talks import Line, root_of

_PATIENCE = 60.0
_PAUSE = 0.05


class Peer(NamedTuple):
    """A running service: its name, what its pages contain, and where its parts are in a page."""

    name: str
    widget: str
    comment: str  # CSS selector of a comment's text
    composer: str  # CSS selector of the form's text area


class Run(Protocol):
    """A function that runs a service with comments on several pages of a website."""

    def __call__(
        self, programs: Path, data: Path, website: str, pages: dict[str, Sequence[Line]]
    ) -> contextlib.AbstractContextManager[Peer]:
        """Run the service until the block ends."""
        ...


@contextlib.contextmanager
def isso(
    programs: Path, data: Path, website: str, pages: dict[str, Sequence[Line]]
) -> Iterator[Peer]:
    """Run Isso with gunicorn. It stores one level of replies."""
    port, file, settings = gunicorn_process.free_port(), data / "isso.db", data / "isso.cfg"
    origin = f"http://127.0.0.1:{port}"
    settings.write_text(
        f"[general]\ndbpath = {file}\nhost = {website}\n[server]\npublic-endpoint = {origin}\n",
        encoding="utf-8",
    )
    command = [programs / "bin" / "gunicorn", "--bind", f"127.0.0.1:{port}", "--workers", "2"]
    environ = {"ISSO_SETTINGS": str(settings)}
    with _running([*command, "--preload", "isso.run"], environ, f"{origin}/js/embed.min.js"):
        with contextlib.closing(sqlite3.connect(file)) as base, base:
            for page, lines in pages.items():
                _fill_isso(base, urlsplit(page).path, lines)
        widget = (
            f'<script data-isso="{origin}/" src="{origin}/js/embed.min.js" async></script>\n'
            '<section id="isso-thread"></section>'
        )
        yield Peer("Isso", widget, "#isso-root .isso-text", ".isso-postbox .isso-textarea")


def _fill_isso(base: sqlite3.Connection, path: str, lines: Sequence[Line]) -> None:
    (first,) = base.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM comments").fetchone()
    thread = base.execute(
        "INSERT INTO threads (uri, title) VALUES (?, 'Harbor time')", (path,)
    ).lastrowid
    for place, line in enumerate(lines):
        root = root_of(lines, place)
        base.execute(
            "INSERT INTO comments (tid, id, parent, created, mode, remote_addr, text, author,"
            " likes, dislikes, voters) VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, x'00')",
            (
                thread,
                first + place,
                None if root == place else first + root,
                line.created.timestamp(),
                f"10.0.{sum(map(ord, line.name)) % 256}.0",  # Its pictures depend on the address.
                line.body,
                line.name,
                line.up,
                line.down,
            ),
        )


_WALINE = """
CREATE TABLE wl_Comment (
    id INTEGER PRIMARY KEY, user_id INTEGER, comment TEXT, insertedAt TEXT, ip TEXT, link TEXT,
    mail TEXT, nick TEXT, pid INTEGER, rid INTEGER, sticky INTEGER, status TEXT, "like" INTEGER,
    ua TEXT, url TEXT, createdAt TEXT, updatedAt TEXT
);
CREATE TABLE wl_Counter (
    id INTEGER PRIMARY KEY, time INTEGER, url TEXT, reaction0 INTEGER, reaction1 INTEGER,
    reaction2 INTEGER, reaction3 INTEGER, reaction4 INTEGER, reaction5 INTEGER, reaction6 INTEGER,
    reaction7 INTEGER, reaction8 INTEGER, createdAt TEXT, updatedAt TEXT
);
CREATE TABLE wl_Users (
    id INTEGER PRIMARY KEY, display_name TEXT, email TEXT, password TEXT, type TEXT, label TEXT,
    url TEXT, avatar TEXT, github TEXT, twitter TEXT, facebook TEXT, google TEXT, weibo TEXT,
    qq TEXT, oidc TEXT, huawei TEXT, "2fa" TEXT, createdAt TEXT, updatedAt TEXT
);
"""


@contextlib.contextmanager
def waline(
    programs: Path, data: Path, website: str, pages: dict[str, Sequence[Line]]
) -> Iterator[Peer]:
    """Run Waline's server, and serve its client compressed from a third origin, as a CDN does."""
    port = gunicorn_process.free_port()
    modules, origin = programs / "node_modules" / "@waline", f"http://127.0.0.1:{port}"
    with contextlib.closing(sqlite3.connect(data / "waline.sqlite")) as base, base:
        base.executescript(_WALINE)
        for page, lines in pages.items():
            _fill_waline(base, urlsplit(page).path, lines)
    environ = {
        "SQLITE_PATH": str(data),
        "JWT_TOKEN": "a secret of the benchmarks",
        "GRAVATAR_STR": website + "/{{ nick | urlencode }}.svg",
        "OAUTH_URL": website + "/" + host_pages.NO_PROVIDERS,
        "DISABLE_REGION": "true",  # All comments have the address of this machine.
        "IPQPS": "0",
    }
    command = [shutil.which("node") or "node", modules / "vercel" / "vanilla.js", str(port)]
    with (
        _running(command, environ, f"{origin}/api/comment?path=/none"),
        host_pages.served(_static(modules / "client" / "dist")) as cdn,
    ):
        widget = (
            f'<link rel="stylesheet" href="{cdn}/waline.css">\n<div id="waline"></div>\n'
            f'<script type="module">import {{ init }} from "{cdn}/waline.js";\n'
            f'init({{ el: "#waline", serverURL: "{origin}", emoji: false, search: false,'
            ' lang: "en" });</script>'
        )
        yield Peer("Waline", widget, ".wl-cards .wl-content", ".wl-editor")


def _fill_waline(base: sqlite3.Connection, path: str, lines: Sequence[Line]) -> None:
    (first,) = base.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM wl_Comment").fetchone()
    for place, line in enumerate(lines):
        moment = line.created.isoformat()
        base.execute(
            "INSERT INTO wl_Comment (id, comment, insertedAt, ip, mail, nick, pid, rid, sticky,"
            ' status, "like", ua, url, createdAt, updatedAt)'
            " VALUES (?, ?, ?, '127.0.0.1', '', ?, ?, ?, ?, 'approved', ?, '', ?, ?, ?)",
            (
                first + place,
                line.body,
                moment,
                line.name,
                None if line.parent is None else first + line.parent,
                None if line.parent is None else first + root_of(lines, place),
                int(line.is_pinned),
                line.up,
                path,
                moment,
                moment,
            ),
        )


def _static(folder: Path) -> flask.Flask:
    """Return an application that serves files as unpkg does: compressed, and for a year."""
    app = flask.Flask("cdn", static_folder=None)

    def file(name: str) -> flask.Response:
        response = flask.send_from_directory(folder, name)
        response.direct_passthrough = False
        response.set_data(gzip.compress(response.get_data()))
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Cache-Control"] = "public, max-age=31536000"
        response.headers["Access-Control-Allow-Origin"] = "*"
        return response

    app.add_url_rule("/<name>", view_func=file)
    return app


RUNS: dict[str, Run] = {"isso": isso, "waline": waline}


def installed() -> dict[str, Path]:
    """Return the folders of the installed services."""
    folder = Path(os.environ.get("PEERS", "/tmp/peers"))  # noqa: S108 - only programs to run
    return {name: folder / name for name in RUNS if (folder / name).is_dir()}


@contextlib.contextmanager
def _running(command: Sequence[str | Path], environ: dict[str, str], url: str) -> Iterator[None]:
    """Run a server until the block ends; wait until it answers a URL."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    process = subprocess.Popen(
        list(map(str, command)),
        env=kept | environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(process, url)
        yield
    finally:
        process.terminate()
        process.wait(_PATIENCE)


def _wait(process: "subprocess.Popen[bytes]", url: str) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):  # noqa: S310 - a local server
            return
        time.sleep(_PAUSE)
    raise SystemExit(f"no answer at {url}")
