"""What an answer of the API costs in this process, against Flask handing out the same bytes.

In one run, on one folded thread, through the WSGI application without a socket:

    bare     a Flask handler that returns the same bytes and reads nothing
    kept     200 of a page that is kept as it is sent
    304      the client names the tag
    made     200 of a page that is put together and compressed: the first after a change

Usage:

    python -m benchmarks.answers [--size 2000] [--rounds 300]

Prints a Markdown table for limit=50 and limit=200, plain and gzip.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import flask
from werkzeug.test import EnvironBuilder, run_wsgi_app

from benchmarks import read_thread, shapes
from comments import app as apps
from comments import config
from comments.reading.compaction import compactor
from comments.sites import site_settings
from comments.store import caches, connection
from comments.web.http import responses
from emulator import inprocess

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = config.Settings(secret="a secret of the benchmarks")  # noqa: S106 - signs nothing
NOTHING = caches.Cache(0)
PATH = "/api/v1/sites/bench/comments"


def fill(size: int) -> None:
    """Store a site with one folded thread."""
    site_settings.add("bench", ["https://a.example"], scheme=SETTINGS.scheme, now=datetime.now(UTC))
    shape = shapes.repeated(shapes.grown(min(size, 2_251)), size)
    read_thread.fill(shape, SETTINGS.scheme)
    folded = compactor.fold(SETTINGS.scheme, read_thread.NAME)
    if folded is None:
        raise SystemExit("the thread was not folded")
    compactor.clear(folded)


def call(app: flask.Flask, path: str, headers: dict[str, str], status: int) -> dict[str, str]:
    """One request; the headers of the answer, its body read."""
    environ = EnvironBuilder(path=path, headers=headers).get_environ()
    body, got, found = run_wsgi_app(app.wsgi_app, environ)
    if int(got[:3]) != status:
        raise SystemExit(f"{path} answered {got}")
    return {**found, "bytes": str(len(b"".join(body)))}


def bare(data: bytes, headers: dict[str, str]) -> flask.Flask:
    """An application that answers with these bytes."""
    app = flask.Flask("bare")

    @app.get(PATH)
    def answer() -> flask.Response:
        return flask.Response(data, headers=headers)

    return app


def body_of(app: flask.Flask, path: str, headers: dict[str, str]) -> bytes:
    """The bytes of an answer."""
    return app.test_client().get(path, headers=headers).data


def ways(
    app: flask.Flask, store: connection.Store, path: str, headers: dict[str, str]
) -> dict[str, Callable[[], object]]:
    """Each way to answer one request."""
    found = call(app, path, headers, 200)
    data = body_of(app, path, headers)
    plain = bare(data, {"Content-Type": "application/json", "ETag": found["ETag"]})
    known = headers | {"If-None-Match": found["ETag"]}
    kept = responses.PAGES.put(store, NOTHING)

    def made() -> None:
        for coding in ("identity", "gzip"):
            for key in keys:
                kept.drop((key, coding))
        call(app, path, headers, 200)

    keys = {key for key, _ in kept._kept}  # noqa: SLF001 - what this process keeps
    return {
        "bare": lambda: call(plain, path, headers, 200),
        "kept": lambda: call(app, path, headers, 200),
        "304": lambda: call(app, path, known, 304),
        "made": made,
    }


def measure(chosen: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median processor seconds of each way, which take turns: others work here too."""
    times: dict[str, list[float]] = {name: [] for name in chosen}
    for _ in range(rounds):
        for name, way in chosen.items():
            start = time.process_time()
            way()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    """Fill a fresh store and print what each way of answering costs."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--size", type=int, default=2_000)
    options.add_argument("--rounds", type=int, default=300)
    chosen = options.parse_args()
    print("| page | bytes | bare ms | kept / bare | 304 / bare | made / bare | 304 / made |")
    print("|---|---|---|---|---|---|---|")
    with inprocess.open_engine(None, indexes=ROOT / "index.yaml") as engine:
        store = connection.Store(inprocess.Channel(engine), project="bench")
        with store.context():
            fill(chosen.size)
        app = apps.create_app(SETTINGS, store)
        for limit in (50, 200):
            for coding in ("identity", "gzip"):
                path = f"{PATH}?thread=page&limit={limit}"
                headers = {"Accept-Encoding": coding}
                size = len(body_of(app, path, headers))
                found = measure(ways(app, store, path, headers), chosen.rounds)
                floor = found["bare"]
                cells = [f"{found[name] / floor:.2f}" for name in ("kept", "304", "made")]
                last = f"{found['304'] / found['made']:.2f}"
                print(
                    f"| limit={limit}, {coding} | {size} | {floor * 1000:.2f} | "
                    f"{' | '.join(cells)} | {last} |"
                )


if __name__ == "__main__":
    main()
