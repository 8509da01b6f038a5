"""Each request runs inside the store's context and leaves nothing behind."""

import concurrent.futures
import dataclasses
import json
import logging
from collections.abc import Callable, Iterable
from typing import Any

import flask
import pytest
from flask.testing import FlaskClient

from comments import app as apps
from comments import config, errors
from comments.domain import records
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from datastore_emulator import inprocess, testing

THREAD = "/api/v1/sites/demo/comments?thread="


def is_inside() -> bool:
    return connection.state.store is not None


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/nothing", THREAD + "t", THREAD, "/api/v1/nothing", "/widget/x.js"]
)
def test_after_a_request_its_thread_is_outside_the_store(client: FlaskClient, path: str) -> None:
    for method in ("GET", "HEAD", "POST", "OPTIONS"):
        client.open(path, method=method)
        assert not is_inside()


def test_after_any_failure_its_thread_is_outside_the_store(
    app: flask.Flask, caplog: pytest.LogCaptureFixture
) -> None:
    @app.get("/fails")
    def fails() -> str:
        raise RuntimeError("canary")

    @app.get("/exits")
    def exits() -> str:
        raise SystemExit

    client = app.test_client()
    with caplog.at_level(logging.ERROR):
        response = client.get("/fails")
    assert response.status_code == 500
    assert json.loads(response.text)["code"] == "internal"
    assert "canary" not in response.text
    assert "canary" in caplog.text
    with pytest.raises(SystemExit):
        client.get("/exits")
    assert not is_inside()


def test_error_handlers_are_inside_the_store(app: flask.Flask) -> None:
    @app.errorhandler(errors.Conflict)
    def handle(_: errors.Conflict) -> str:
        return str(reads.get(comment_rows.site_key("nothing")))

    @app.get("/conflicts")
    def conflicts() -> str:
        raise errors.Conflict("thread-closed")

    assert app.test_client().get("/conflicts").text == "None"


def test_a_write_around_the_owner_is_an_internal_error(
    app: flask.Flask, caplog: pytest.LogCaptureFixture
) -> None:
    @app.get("/around")
    def around() -> str:
        writes = ownership.Writes("web", delete=(comment_rows.comment_key("a" * 26),))
        transactions.transaction(lambda: transactions.apply(writes))
        return ""

    response = app.test_client().get("/around")
    assert response.status_code == 500
    assert json.loads(response.text)["code"] == "internal"
    assert "Comment" not in response.text
    assert "UnownedWrite" in caplog.text


@pytest.mark.slow
def test_concurrent_requests_do_not_mix(app: flask.Flask, client: FlaskClient) -> None:
    def work(number: int) -> tuple[int, int]:
        """Post `number` % 4 comments to a separate thread; return this number and the total."""
        own = app.test_client()
        for _ in range(number % 4):
            sent = {"name": f"Guest {number}", "body": f"by {number}"}
            own.post(f"{THREAD}{number}", json=sent)
        page = json.loads(own.get(f"{THREAD}{number}").text)
        assert {row["html"] for row in page["comments"]} <= {f"<p>by {number}</p>\n"}
        return number % 4, page["total"]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for expected, total in pool.map(work, range(24)):
            assert total == expected


def test_the_commands_are_registered(app: flask.Flask) -> None:
    assert {"site", "import", "repair"} <= set(app.cli.commands)


def test_debugging_is_off(app: flask.Flask) -> None:
    assert not app.debug
    assert not app.config["PROPAGATE_EXCEPTIONS"]


def test_the_warm_up_of_an_empty_store_writes_nothing(
    app: flask.Flask, engine: inprocess.Engine
) -> None:
    with testing.meter(engine) as cost:
        apps.warm_up(app)
    assert (cost.writes, cost.deletes) == (0, 0)
    assert not is_inside()


@pytest.mark.parametrize("fault", [errors.Overloaded("away"), ValueError("damaged")])
def test_a_start_continues_after_any_failure_of_the_warm_up(
    app: flask.Flask, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def fail(*_arguments: object) -> None:
        raise fault

    monkeypatch.setattr(reads, "fetch", fail)
    apps.warm_up(app)
    assert not is_inside()
    assert app.test_client().get("/healthz").status_code == 200


def test_a_start_waits_at_most_half_a_second_for_its_warm_up(
    app: flask.Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    now = 100.0

    def answer(
        environ: dict[str, str], start: Callable[[str, list[tuple[str, str]]], object]
    ) -> list[bytes]:
        nonlocal now
        asked.append(f"{environ['HTTP_HOST']}{environ['PATH_INFO']}?{environ['QUERY_STRING']}")
        now += 0.2
        start("200 OK", [])
        return []

    names = [records.ThreadName("demo", f"{n} & more") for n in range(9)]
    monkeypatch.setattr(app, "wsgi_app", answer)
    monkeypatch.setattr(apps.directories, "some", lambda most: names[:most])  # type: ignore[attr-defined]
    monkeypatch.setattr(apps.time, "monotonic", lambda: now)  # type: ignore[attr-defined]
    apps.warm_up(app)
    path = "localhost/api/v1/sites/demo/comments?thread="
    assert asked == [f"{path}{n}+%26+more" for n in range(3)]


def test_a_process_with_a_public_name_warms_up_under_it(
    open_store: connection.Store, settings: config.Settings
) -> None:
    named = dataclasses.replace(settings, public_url="https://comments.example/below")
    app = apps.create_app(named, open_store)
    told: list[str] = []
    served = app.wsgi_app

    def telling(environ: dict[str, Any], start: Callable[..., object]) -> Iterable[bytes]:
        def noting(status: str, *rest: Any) -> object:
            told.append(f"{environ['HTTP_HOST']} {status}")
            return start(status, *rest)

        return served(environ, noting)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        names = [records.ThreadName("demo", "page")]
        patch.setattr(apps.directories, "some", lambda _most: names)  # type: ignore[attr-defined]
        patch.setattr(app, "wsgi_app", telling)
        apps.warm_up(app)
    assert told
    assert not [line for line in told if " 421" in line]
    assert all(line.startswith("comments.example ") for line in told)


def test_an_unavailable_store_does_not_prevent_the_start(
    app: flask.Flask, engine: inprocess.Engine
) -> None:
    engine.close()
    apps.warm_up(app)
    assert not is_inside()
