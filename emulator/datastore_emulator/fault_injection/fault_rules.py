"""The rules of a fault plan: the JSON document, and the calls that each rule strikes.

Owns the document format. A plan is an object with a seed and a list of rules:

    {"seed": 7, "rules": [
      {"rpc": "Commit", "call": 3, "when": "after", "status": "UNAVAILABLE", "message": "gone"},
      {"rpc": "Lookup", "every": 10, "delay": 0.5},
      {"probability": 0.05, "status": "ABORTED", "times": 20},
      {"rpc": "RunQuery", "call": [1, 4], "drop": true},
      {"rpc": "RunQuery", "batch": 20},
      {"point": "commit.before", "call": 2, "kill": true}]}

    rpc | point         the calls that the rule matches: calls of one RPC, or passes of a named
                        point in the engine; without either field, all calls
    call | every |      the matching calls that the rule strikes: the n-th call (from 1; a number or
    probability         a list), every n-th call, or each call with a probability; without these
                        fields, all matching calls
    times               the maximum number of strikes
    when                "before" the call is applied (the default), or "after" it is applied, when
                        the client loses the answer; not allowed with a point
    delay               seconds to wait before the fault; without a fault, only the delay happens
    status, message     the name of a gRPC status, and its message
    drop                cut the connection without an answer
    hang                do not answer until the plan is removed or the client gives up
    kill                kill the process with SIGKILL
    batch               end the batch after a random number of results between 0 and this number,
                        with NOT_FINISHED if more results exist; only with the rpc RunQuery

Whether a rule strikes its n-th call depends only on the seed, the rule's position in the list and
n.
"""

from __future__ import annotations

import enum
import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from datastore_emulator import errors

POINTS = frozenset(
    {
        # When several commits share one COMMIT (`group_commit`), each commit passes each point in
        # turn.
        "commit.begin",  # Before the commit's write transaction, or its part in a shared one.
        "commit.mutation",  # Before each mutation.
        "commit.indexes",  # Between an entity's row and its index rows.
        "commit.before",  # After all writes, but before the COMMIT.
        "commit.after",  # After the COMMIT, which other commits may share, but before the answer.
    }
)
RPCS = frozenset(
    {
        "Lookup", "RunQuery", "RunAggregationQuery", "BeginTransaction", "Commit", "Rollback",
        "AllocateIds", "ReserveIds",
    }
)  # fmt: skip
STATUSES = frozenset(
    {
        "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
        "ALREADY_EXISTS", "PERMISSION_DENIED", "UNAUTHENTICATED", "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL",
        "UNAVAILABLE", "DATA_LOSS",
    }
)  # fmt: skip
_FIELDS = frozenset(
    {
        "rpc", "point", "call", "every", "probability", "times", "when", "delay", "status",
        "message", "drop", "hang", "kill", "batch",
    }
)  # fmt: skip
_MOST_DELAY = 3600.0
_T = TypeVar("_T")


class Action(enum.Enum):
    """What happens to a struck call after the delay."""

    SLOW = "delay"
    STATUS = "status"
    DROP = "drop"
    HANG = "hang"
    KILL = "kill"
    BATCH = "batch"


class Rule(NamedTuple):
    """One rule. `place` is an RPC or a point, or empty for every call.

    `batch` is the maximum number of results in the response to a struck RunQuery.
    """

    place: str
    action: Action
    is_after: bool = False
    calls: frozenset[int] = frozenset()
    every: int = 1
    probability: float | None = None
    times: int | None = None
    delay: float = 0.0
    status: str = ""
    message: str = ""
    batch: int = 0

    def strikes(self, number: int, *, seed: int, position: int) -> bool:
        """Return whether the rule strikes the n-th call, regardless of `times`."""
        if self.calls:
            return number in self.calls
        if self.probability is not None:
            return _chance(f"{seed}/{position}/{number}") < self.probability
        return number % self.every == 0

    def batch_size(self, number: int, *, seed: int, position: int) -> int:
        """Return a uniformly random size, from 0 to `batch`, for the n-th call's batch."""
        return int(_chance(f"{seed}/{position}/{number}/batch") * (self.batch + 1))


def _chance(text: str) -> float:
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def parse(document: object) -> tuple[int, tuple[Rule, ...]]:
    """Return the seed and the rules of a decoded JSON document.

    Raises:
        errors.InvalidArgument: The document is not a valid plan; the message names the field.
    """
    if not isinstance(document, Mapping):
        raise _wrong("the plan", "is not an object")
    _only(document, {"seed", "rules"}, "the plan")
    seed = _take(document, "seed", int, "seed", 0)
    listed = _take(document, "rules", list, "rules", [])
    return seed, tuple(_rule(rule, f"rules[{n}]") for n, rule in enumerate(listed))


def _rule(given: object, where: str) -> Rule:
    if not isinstance(given, Mapping):
        raise _wrong(where, "is not an object")
    _only(given, _FIELDS, where)
    _at_most_one(given, ("rpc", "point"), where)
    _at_most_one(given, ("call", "every", "probability"), where)
    _at_most_one(given, ("status", "drop", "hang", "kill", "batch"), where)
    if "point" in given and "when" in given:
        raise _wrong(f"{where}.when", "cannot be combined with point")
    if "message" in given and "status" not in given:
        raise _wrong(f"{where}.message", "requires a status")
    if "batch" in given and given.get("rpc") != "RunQuery":
        raise _wrong(f"{where}.batch", "requires the rpc RunQuery")
    if "batch" in given and "when" in given:
        raise _wrong(f"{where}.batch", "cannot be combined with when")
    status = _choice(given, "status", STATUSES, where)
    action = _action(given, where)
    return Rule(
        place=_choice(given, "rpc", RPCS, where) or _choice(given, "point", POINTS, where),
        action=action,
        is_after=_choice(given, "when", {"before", "after"}, where) == "after",
        calls=_calls(given, where),
        every=_positive(given, "every", where) or 1,
        probability=_number(given, "probability", 1.0, where),
        times=_positive(given, "times", where),
        delay=_number(given, "delay", _MOST_DELAY, where) or 0.0,
        status=status,
        message=_take(given, "message", str, f"{where}.message", "An injected fault."),
        batch=_positive(given, "batch", where) or 0,
    )


def _action(given: Mapping[str, object], where: str) -> Action:
    if "status" in given:
        return Action.STATUS
    for action in (Action.DROP, Action.HANG, Action.KILL):
        if action.value in given:
            if given[action.value] is not True:
                raise _wrong(f"{where}.{action.value}", "is not true")
            return action
    if "batch" in given:
        return Action.BATCH
    if "delay" not in given:
        raise _wrong(where, "requires one of status, drop, hang, kill, batch and delay")
    return Action.SLOW


def _calls(given: Mapping[str, object], where: str) -> frozenset[int]:
    named = given.get("call", [])
    listed = named if isinstance(named, list) else [named]
    if ("call" in given and not listed) or not all(type(n) is int and n > 0 for n in listed):
        raise _wrong(f"{where}.call", "is neither a positive integer nor a list of them")
    return frozenset(listed)


def _positive(given: Mapping[str, object], name: str, where: str) -> int | None:
    if name not in given:
        return None
    number = given[name]
    if type(number) is not int or number < 1:
        raise _wrong(f"{where}.{name}", "is not a positive integer")
    return number


def _number(given: Mapping[str, object], name: str, most: float, where: str) -> float | None:
    if name not in given:
        return None
    number = given[name]
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise _wrong(f"{where}.{name}", "is not a number")
    if math.isnan(number) or not 0 <= number <= most:
        raise _wrong(f"{where}.{name}", f"is not between 0 and {most:g}")
    return float(number)


def _choice(given: Mapping[str, object], name: str, known: Iterable[str], where: str) -> str:
    if name not in given:
        return ""
    chosen = given[name]
    if not isinstance(chosen, str) or chosen not in known:
        raise _wrong(f"{where}.{name}", f"is {chosen!r}, not one of {', '.join(sorted(known))}")
    return chosen


def _take(given: Mapping[str, object], name: str, kind: type[_T], where: str, default: _T) -> _T:
    value = given.get(name, default)
    if not isinstance(value, kind) or isinstance(value, bool):
        names = {int: "an integer", list: "a list", str: "a string"}
        raise _wrong(where, f"is not {names[kind]}")
    return value


def _only(given: Mapping[str, object], known: Iterable[str], where: str) -> None:
    unknown = sorted(set(map(str, given)) - set(known))
    if unknown:
        raise _wrong(where, f"has unknown fields: {', '.join(unknown)}")


def _at_most_one(given: Mapping[str, object], names: Iterable[str], where: str) -> None:
    given_names = [name for name in names if name in given]
    if len(given_names) > 1:
        raise _wrong(where, f"has both {given_names[0]} and {given_names[1]}")


def _wrong(where: str, why: str) -> errors.InvalidArgument:
    return errors.InvalidArgument(f"Fault plan: {where} {why}.")
