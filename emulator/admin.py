"""The admin door: what tests and people ask of a running emulator, beside the API itself.

Owns the paths of the second port and what each does. `httpdoor` keeps everyone out who is not a
program or a page of ours on this machine, so nothing here asks for a password.

    GET    /                    "Ok", as Google's emulators answer
    POST   /reset               all data are gone; ?project= &database= &namespace= a part of them
    POST   /shutdown            the process ends as on SIGTERM
    GET    /export              entities as lines of JSON (`dumps`); ?project= ... &kind= a part
    POST   /import              writes such lines: all or nothing, or ?batch= to a commit
    GET    /faults              the fault plan; PUT installs one, DELETE ends it
    GET    /clock               the engine's time; POST moves it on by {"advance": seconds}
    GET    /ui                  pages for people: kinds, entities, indexes (`pages`)
    GET    /indexes             the composite indexes as an index.yaml
    GET    /meter               what production would bill for; POST or DELETE counts from zero
    POST   /v1/projects/P:M     the API (`restapi`)
           /v1/projects/P/...   the Datastore Admin API (`adminrest`)
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from emulator import adminapi, adminrest, errors, faults, httpdoor, indexyaml, restapi
from emulator import clock as clocks
from emulator import engine as engines

JSON = "application/json"
_MAX_BODY = 1024 * 1024

_Answer = Callable[[httpdoor.Request], httpdoor.Response]


@dataclasses.dataclass(frozen=True, slots=True)
class Admin:
    """Answers for one engine.

    Args:
        engine: what is looked at and changed.
        shut_down: ends the process, soon.
        clock: the engine's, if it can be moved.
        given_api: the Datastore Admin API of the engine; None for one without exports.
    """

    engine: engines.Engine
    shut_down: Callable[[], None]
    clock: clocks.Clock | None = None
    given_api: dataclasses.InitVar[adminapi.AdminApi | None] = None
    api: adminapi.AdminApi = dataclasses.field(init=False)

    def __post_init__(self, given_api: adminapi.AdminApi | None) -> None:
        """Take the API that is given, or make one."""
        object.__setattr__(self, "api", given_api or adminapi.AdminApi(self.engine))

    def answer(self, request: httpdoor.Request) -> httpdoor.Response:
        """Answer one request."""
        if adminrest.is_path(request.path):
            return adminrest.answer(self.api, request)
        if request.path.startswith(restapi.PREFIX):
            return restapi.answer(self.engine, request)
        if request.path == "/ui" or request.path.startswith("/ui/"):
            return self._look(request)
        by_method = self._routes().get(request.path)
        if by_method is None:
            raise httpdoor.BadRequest(f"There is no {request.path}.", HTTPStatus.NOT_FOUND)
        answer = by_method.get(request.method)
        if answer is None:
            raise httpdoor.BadRequest(
                f"{request.path} answers {' and '.join(by_method)}.", HTTPStatus.METHOD_NOT_ALLOWED
            )
        try:
            return answer(request)
        except errors.DatastoreError as error:
            status = restapi.http_status(error)
            raise httpdoor.BadRequest(f"{error.status}: {error.message}", status) from error

    @property
    def paths(self) -> frozenset[str]:
        """The paths that are answered, besides the API's and the pages'."""
        return frozenset(self._routes())

    def _look(self, request: httpdoor.Request) -> httpdoor.Response:
        from emulator import pages  # noqa: PLC0415 - only who looks pays

        if request.method != "GET":
            raise httpdoor.BadRequest("The pages are for reading.", HTTPStatus.METHOD_NOT_ALLOWED)
        return pages.answer(self.engine, request)

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

    def _reset(self, request: httpdoor.Request) -> httpdoor.Response:
        self.engine.reset(**_part(request, "project", "database", "namespace"))
        return httpdoor.Response(b"Resetting...\n")

    def _shutdown(self, request: httpdoor.Request) -> httpdoor.Response:
        _part(request)
        return httpdoor.Response(b"Shutting down...\n", after=self.shut_down)

    def _export(self, request: httpdoor.Request) -> httpdoor.Response:
        from emulator import dumps  # noqa: PLC0415 - only who moves data pays

        selection = dumps.Selection(**_part(request, "project", "database", "namespace", "kind"))
        return httpdoor.Response(
            dumps.export(self.engine.storage, selection), content_type="application/x-ndjson"
        )

    def _import(self, request: httpdoor.Request) -> httpdoor.Response:
        from emulator import dumps  # noqa: PLC0415 - same

        batch = _part(request, "batch").get("batch", "")
        if batch and not (batch.isascii() and batch.isdecimal() and int(batch)):
            raise httpdoor.BadRequest("batch is not a positive number.")
        with dumps.spooled(request.body) as body:
            stored = dumps.load(
                self.engine.storage,
                dumps.read_lines(body),
                source="the body",
                batch=int(batch) if batch else None,
            )
        return _json({"entities": stored})

    def _faults(self, _request: httpdoor.Request) -> httpdoor.Response:
        plan = self.engine.fault_plan
        log = [] if plan is None else [each._asdict() for each in plan.log]
        return _json({"is_installed": plan is not None, "injected": log})

    def _install_faults(self, request: httpdoor.Request) -> httpdoor.Response:
        self.engine.install_faults(faults.Plan.parse(request.read(_MAX_BODY)))
        return self._faults(request)

    def _remove_faults(self, request: httpdoor.Request) -> httpdoor.Response:
        self.engine.install_faults(None)
        return self._faults(request)

    def _time(self, _request: httpdoor.Request) -> httpdoor.Response:
        return _json({"now": self.engine.clock(), "is_manual": self.clock is not None})

    def _advance(self, request: httpdoor.Request) -> httpdoor.Response:
        if self.clock is None:
            raise httpdoor.BadRequest(
                "The clock runs by itself: start with --clock manual.", HTTPStatus.CONFLICT
            )
        match _object(request):
            case {"advance": int() | float() as seconds, **rest} if not rest:
                pass
            case _:
                raise httpdoor.BadRequest('Send {"advance": seconds}.')
        try:
            self.clock.advance(seconds)
        except (ValueError, OverflowError) as error:
            raise httpdoor.BadRequest(str(error)) from error
        return self._time(request)

    def _indexes(self, _request: httpdoor.Request) -> httpdoor.Response:
        with self.engine.storage.read() as snapshot:
            entries = map(indexyaml.entry, snapshot.definitions.composites)
            return httpdoor.Response("".join(("indexes:\n", *entries)).encode())

    def _cost(self, _request: httpdoor.Request) -> httpdoor.Response:
        return _json(self.engine.meter.total()._asdict())

    def _forget_cost(self, request: httpdoor.Request) -> httpdoor.Response:
        self.engine.meter.reset()
        return self._cost(request)


def _health(_request: httpdoor.Request) -> httpdoor.Response:
    return httpdoor.Response(b"Ok\n")


def _part(request: httpdoor.Request, *names: str) -> dict[str, str]:
    """Return the query's parameters; one that is not known must not be passed over."""
    for name in request.query:
        if name not in names:
            raise httpdoor.BadRequest(f"{request.path} knows no parameter {name}.")
    return dict(request.query)


def _object(request: httpdoor.Request) -> dict[str, Any]:
    try:
        given = json.loads(request.read(_MAX_BODY))
    except (ValueError, RecursionError) as error:
        raise httpdoor.BadRequest(f"The body is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise httpdoor.BadRequest("The body is not a JSON object.")
    return given


def _json(content: object) -> httpdoor.Response:
    return httpdoor.Response(json.dumps(content).encode() + b"\n", content_type=JSON)
