"""Intercept store calls to count them or to make them fail as planned.

A fixture selects one of these interceptors in the fixture `interceptor`; every store that
`open_store` opens calls it.
"""

import collections
from collections.abc import Callable
from typing import Any, TypeVar

import grpc

from comments.store import connection
from datastore_emulator import errors as engine_errors
from datastore_emulator import inprocess

T = TypeVar("T", bound=inprocess.Interceptor)

TRANSIENT = [
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.CANCELLED,
]


class InterceptorSlot:
    """A slot that passes each store call to the selected interceptor, if any."""

    def __init__(self) -> None:
        self._used: inprocess.Interceptor | None = None

    @property
    def is_used(self) -> bool:
        """Whether an interceptor is selected."""
        return self._used is not None

    def use(self, used: T) -> T:
        """Select the interceptor. Only one is allowed."""
        assert self._used is None, "an interceptor is already set"
        self._used = used
        return used

    def __call__(self, method: str, request: Any, proceed: Callable[[], Any]) -> Any:
        return self._used(method, request, proceed) if self._used else proceed()


class Calls:
    """An interceptor that records the names of calls in order."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, method: str, _: Any, proceed: Callable[[], Any]) -> Any:
        self.names.append(method)
        return proceed()


class Faults:
    """An interceptor that makes a method's n-th call fail before or after it is applied."""

    def __init__(self) -> None:
        self.plan: dict[tuple[str, int], tuple[str, grpc.StatusCode]] = {}
        self.calls: collections.Counter[str] = collections.Counter()
        self.always: set[str] = set()
        self.requests: list[tuple[str, Any]] = []

    def __call__(self, method: str, request: Any, proceed: Callable[[], Any]) -> Any:
        self.requests.append((method, request))
        self.calls[method] += 1
        when, status = self.plan.get((method, self.calls[method]), ("", None))
        if method in self.always:
            when, status = "before", grpc.StatusCode.UNAVAILABLE
        if when == "before":
            raise error(status)
        answer = proceed()
        if when == "after":
            raise error(status)
        return answer

    def lose(self, method: str, when: str, status: grpc.StatusCode) -> None:
        """Make the next call of a method fail."""
        self.plan[method, self.calls[method] + 1] = (when, status)


class Commits:
    """An interceptor that records calls and makes planned commits fail, whether applied or not.

    The plan has a word for each next commit: "" for success, "before" or "after" for a failure
    before or after the commit is applied, and "late" for a failure before it is applied, with which
    the caller's deadline passes. No other caller of the test then needs a short deadline, which
    would also pass while a busy machine pauses.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.plan: list[str] = []

    def __call__(self, method: str, _: Any, proceed: Any) -> Any:
        self.calls.append(method)
        when = self.plan.pop(0) if method == "Commit" and self.plan else ""
        if when == "late":
            connection.state.end = 0.0
        if when in {"before", "late"}:
            raise error(grpc.StatusCode.UNAVAILABLE)
        answer = proceed()
        if when == "after":
            raise error(grpc.StatusCode.UNAVAILABLE)
        return answer


def error(status: grpc.StatusCode | None) -> engine_errors.DatastoreError:
    """Return the store's error with this status."""
    made = engine_errors.DatastoreError("planned")
    made.status = status.name if status else ""
    return made
