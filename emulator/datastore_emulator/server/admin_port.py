"""The admin port: HTTP commands for tests and people, alongside the API.

Owns the paths of the admin port and their actions; the API's port also answers some of these paths.
`http_server` admits only programs on this machine and the emulator's own pages to the admin port,
so no request needs a password.

    GET    /                    "Ok", like the answer of Google's emulators
    POST   /reset               delete all data; ?project= &database= &namespace= select a part
    POST   /shutdown            end the process, as SIGTERM does
    GET    /export              entities as `json_lines`; ?project= ... &kind= select a part
    POST   /import              import such lines, all or none; ?batch= sets the entities per commit
    GET    /faults              the fault plan; PUT installs one, DELETE removes it
    GET    /clock               the engine's time; POST {"advance": seconds} moves the clock
    GET    /ui                  the data browser: kinds, entities, indexes (`browser_pages`)
    GET    /indexes             the composite indexes as an index.yaml
    GET    /meter               the operations that Google would bill; POST or DELETE resets them
    POST   /v1/projects/P:M     the API (`rest_api`)
           /v1/projects/P/...   the Datastore Admin API (`admin_rest`)
"""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from datastore_emulator import clock as clocks
from datastore_emulator import engine as engines
from datastore_emulator import errors
from datastore_emulator.admin_api import admin_service
from datastore_emulator.encoding import index_yaml
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator.server import admin_rest, http_server, rest_api

JSON = "application/json"
_MAX_BODY = 1024 * 1024

# The commands that Google's emulators also have; the API's port answers them as well.
COMMON = frozenset({"/", "/reset", "/shutdown"})

_Answer = Callable[[http_server.Request], http_server.Response]


class AdminPort:
    """Answers HTTP requests for one engine.

    Args:
        engine: The engine to read and change.
        shut_down: A function that makes the process end soon, for `/shutdown`.
        clock: The engine's clock if tests can move it, else None.
        api: The Datastore Admin API for the engine; None uses an API without exports.
        commands: The paths of the commands to answer; None answers all commands and the data
        browser.
    """

    def __init__(
        self,
        engine: engines.Engine,
        shut_down: Callable[[], None] | None = None,
        clock: clocks.Clock | None = None,
        api: admin_service.AdminService | None = None,
        commands: frozenset[str] | None = None,
    ) -> None:
        self._engine = engine
        self._shut_down = shut_down
        self._clock = clock
        self._api = api or admin_service.AdminService(engine)
        self._commands = commands

    def answer(self, request: http_server.Request) -> http_server.Response:
        if admin_rest.is_path(request.path):
            return admin_rest.answer(self._api, request)
        if request.path.startswith(rest_api.PREFIX):
            return rest_api.answer(self._engine, request)
        is_offered = self._commands is None or request.path in self._commands
        if is_offered and (request.path == "/ui" or request.path.startswith("/ui/")):
            return self._look(request)
        by_method = self._routes().get(request.path)
        if by_method is None or not is_offered:
            raise http_server.BadRequest(
                f"The path {request.path} does not exist.", HTTPStatus.NOT_FOUND
            )
        answer = by_method.get(request.method)
        if answer is None:
            raise http_server.BadRequest(
                f"{request.path} accepts only {' and '.join(by_method)}.",
                HTTPStatus.METHOD_NOT_ALLOWED,
            )
        try:
            return answer(request)
        except errors.DatastoreError as error:
            status = rest_api.http_status(error)
            raise http_server.BadRequest(f"{error.status}: {error.message}", status) from error

    @property
    def paths(self) -> frozenset[str]:
        """The paths of the commands; the API and the data browser define their own paths."""
        return frozenset(self._routes())

    def _look(self, request: http_server.Request) -> http_server.Response:
        from datastore_emulator.server import browser_pages  # noqa: PLC0415 - loaded on first use

        if request.method != "GET":
            raise http_server.BadRequest(
                "The data browser accepts only GET.", HTTPStatus.METHOD_NOT_ALLOWED
            )
        return browser_pages.answer(self._engine, request)

    def _routes(self) -> dict[str, dict[str, _Answer]]:
        return {
            "/": {"GET": _health},
            "/reset": {"POST": self._reset},
            "/shutdown": {"POST": self._shutdown},
            "/export": {"GET": self._export},
            "/import": {"POST": self._import},
            "/meter": {
                "GET": self._cost,
                "POST": self._forget_cost,
                "DELETE": self._forget_cost,
            },
            "/faults": {
                "GET": self._faults,
                "PUT": self._install_faults,
                "DELETE": self._remove_faults,
            },
            "/clock": {"GET": self._time, "POST": self._advance},
            "/indexes": {"GET": self._indexes},
        }

    def _reset(self, request: http_server.Request) -> http_server.Response:
        self._engine.reset(**_part(request, "project", "database", "namespace"))
        return http_server.Response(b"Resetting...\n")

    def _shutdown(self, request: http_server.Request) -> http_server.Response:
        _part(request)
        return http_server.Response(b"Shutting down...\n", after=self._shut_down)

    def _export(self, request: http_server.Request) -> http_server.Response:
        from datastore_emulator.import_export import json_lines  # noqa: PLC0415 - loaded on first use

        selection = json_lines.Selection(
            **_part(request, "project", "database", "namespace", "kind")
        )
        return http_server.Response(
            json_lines.export(self._engine.storage, selection), content_type="application/x-ndjson"
        )

    def _import(self, request: http_server.Request) -> http_server.Response:
        from datastore_emulator.import_export import json_lines  # noqa: PLC0415 - loaded on first use

        batch = _part(request, "batch").get("batch", "")
        if batch and not (batch.isascii() and batch.isdecimal() and int(batch)):
            raise http_server.BadRequest("batch must be a positive integer.")
        with json_lines.spooling(request.body) as body:
            stored = json_lines.load(
                self._engine.storage,
                json_lines.read_lines(body),
                source="the body",
                batch=int(batch) if batch else None,
            )
        return _json({"entities": stored})

    def _faults(self, _request: http_server.Request) -> http_server.Response:
        plan = self._engine.fault_plan
        log = [] if plan is None else [injection._asdict() for injection in plan.log]
        return _json({"is_installed": plan is not None, "injected": log})

    def _install_faults(self, request: http_server.Request) -> http_server.Response:
        self._engine.install_faults(fault_plans.Plan.parse(request.read(_MAX_BODY)))
        return self._faults(request)

    def _remove_faults(self, request: http_server.Request) -> http_server.Response:
        self._engine.install_faults(None)
        return self._faults(request)

    def _time(self, _request: http_server.Request) -> http_server.Response:
        return _json({"now": self._engine.clock(), "is_manual": self._clock is not None})

    def _advance(self, request: http_server.Request) -> http_server.Response:
        if self._clock is None:
            raise http_server.BadRequest(
                "The clock runs by itself. Start the emulator with --clock manual to move it.",
                HTTPStatus.CONFLICT,
            )
        match _object(request):
            case {"advance": int() | float() as seconds, **rest} if not rest:
                pass
            case _:
                raise http_server.BadRequest('Send {"advance": seconds}.')
        try:
            self._clock.advance(seconds)
        except (ValueError, OverflowError) as error:
            raise http_server.BadRequest(str(error)) from error
        return self._time(request)

    def _indexes(self, _request: http_server.Request) -> http_server.Response:
        with self._engine.storage.read() as snapshot:
            entries = map(index_yaml.entry, snapshot.definitions.composites)
            return http_server.Response("".join(("indexes:\n", *entries)).encode())

    def _cost(self, _request: http_server.Request) -> http_server.Response:
        return _json(self._engine.meter.total()._asdict())

    def _forget_cost(self, request: http_server.Request) -> http_server.Response:
        self._engine.meter.reset()
        return self._cost(request)


def _health(_request: http_server.Request) -> http_server.Response:
    return http_server.Response(b"Ok\n")


def _part(request: http_server.Request, *names: str) -> dict[str, str]:
    """Return the query parameters; refuse unknown ones instead of ignoring them."""
    for name in request.query:
        if name not in names:
            raise http_server.BadRequest(f"{request.path} has no parameter {name}.")
    return dict(request.query)


def _object(request: http_server.Request) -> dict[str, Any]:
    try:
        given = json.loads(request.read(_MAX_BODY))
    except (ValueError, RecursionError) as error:
        raise http_server.BadRequest(f"The body is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise http_server.BadRequest("The body is not a JSON object.")
    return given


def _json(content: object) -> http_server.Response:
    return http_server.Response(json.dumps(content).encode() + b"\n", content_type=JSON)
