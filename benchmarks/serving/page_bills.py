"""The operations that Google's service would bill for the calls of `served_pages`.

The module runs the product's application on the same data file in this process, where the engine's
meter can count the operations. "Cold" means a process with an empty cache; "warm" means a
repetition of the same call.
"""

from collections.abc import Sequence
from pathlib import Path

from werkzeug.test import EnvironBuilder, run_wsgi_app

from benchmarks.serving import gunicorn_process, page_figures
from benchmarks.threads import loading
from comments import app as apps
from comments import config
from comments.store import connection
from datastore_emulator import inprocess, testing


def bills(data: Path, calls: Sequence[page_figures.Call]) -> list[page_figures.Bill]:
    """Return the reads of each call, cold and warm."""
    settings = config.Settings(secret=gunicorn_process.SECRET)
    with inprocess.open_engine(
        data / "flatthread.db", concurrency="pessimistic", history=0
    ) as engine:
        return [_bill(engine, settings, call) for call in calls]


def _bill(
    engine: inprocess.Engine, settings: config.Settings, call: page_figures.Call
) -> page_figures.Bill:
    store = connection.Store(inprocess.Channel(engine), project=loading.PROJECT)
    app = apps.create_app(settings, store)
    counted = []
    for _ in range(2):
        with testing.meter(engine) as cost:
            asked = EnvironBuilder(
                path=call.path,
                method="POST" if call.body else "GET",
                headers=call.headers,
                data=call.body or None,
            )
            body, status, _ = run_wsgi_app(app.wsgi_app, asked.get_environ())
            b"".join(body)
            if not status.startswith("200"):
                raise SystemExit(f"{call.path} answered {status}")
        counted.append(cost.reads)
    return page_figures.Bill(call.name, call.size, *counted)
