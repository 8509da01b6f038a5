"""Run NDB's client on the store's channel, with time-outs on all calls, and check commits.

NDB's own client opens a second channel and makes calls without time-outs. This client uses the
channel that it is given, and applies `CallRules` before each call.
"""

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import grpc
from google.cloud import ndb
from google.cloud.datastore_v1.types import datastore as rpc_types

SERVICE = "/google.datastore.v1.Datastore/"


@dataclasses.dataclass(frozen=True, slots=True)
class CallRules:
    """Rules for each call: a time-out in seconds, and checks that raise an error to forbid it."""

    timeout: Callable[[], float]
    check_call: Callable[[], None]
    check_commit: Callable[[Any], None]


class NdbClient(ndb.Client):
    """NDB's client with a custom stub. NDB's own constructor would open a second channel."""

    def __init__(
        self,
        channel: grpc.Channel,
        *,
        project: str,
        database: str,
        namespace: str,
        rules: CallRules,
    ) -> None:
        self.project = project
        self.database = database or None
        self.namespace = namespace or None
        self.host = "store"
        self.secure = False
        self.stub = _Stub(channel, rules)


class _Stub:
    """The calls that NDB makes, each with a time-out. Commits are checked before they are sent."""

    def __init__(self, channel: grpc.Channel, rules: CallRules) -> None:
        def method(name: str) -> Any:
            return channel.unary_unary(
                f"{SERVICE}{name}",
                request_serializer=getattr(rpc_types, f"{name}Request").serialize,
                response_deserializer=getattr(rpc_types, f"{name}Response").deserialize,
            )

        self.lookup = _Method(rules, method("Lookup"))
        self.run_query = _Method(rules, method("RunQuery"))
        self.begin_transaction = _Method(rules, method("BeginTransaction"))
        self.commit = _Method(rules, method("Commit"), check=rules.check_commit)
        self.rollback = _Rollback(rules, method("Rollback"))


@dataclasses.dataclass(frozen=True, slots=True)
class _Method:
    rules: CallRules
    call: Any
    check: Callable[[Any], None] = lambda _: None

    def future(self, request: Any, *, timeout: float | None = None, metadata: Any = ()) -> Any:
        self.rules.check_call()
        self.check(request)
        return self.call.future(request, timeout=timeout or self.rules.timeout(), metadata=metadata)


@dataclasses.dataclass(frozen=True, slots=True)
class _Rollback:
    """A rollback that never raises an error, because an error here would hide the original error.

    If a rollback fails, the store expires the transaction.
    """

    rules: CallRules
    call: Any

    def future(self, request: Any, *, timeout: float | None = None, metadata: Any = ()) -> Any:
        wait = timeout or min(1.0, self.rules.timeout())
        with contextlib.suppress(grpc.RpcError):
            self.call(request, timeout=wait, metadata=metadata)
        return _Answered(rpc_types.RollbackResponse())


@dataclasses.dataclass(frozen=True, slots=True)
class _Answered:
    """A finished call, with the methods that NDB calls on it."""

    answer: Any

    def exception(self) -> None:
        return None

    def result(self) -> Any:
        return self.answer

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        callback(self)
