"""Preconditions: the state that a mutation expects the stored entity to be in.

Owns `base_version`, `update_time` and what a conflict leads to. Pure.

Version 0 means that there is no entity. A version that the stored entity has not reached yet cannot
be a conflict: it is refused. Which operation may meet a stored or a missing entity at all (insert,
update) is not decided here, and comes first.
"""

from __future__ import annotations

from typing import NamedTuple

from emulator import errors, protobufs

_STRATEGIES = (_UNSPECIFIED, _SERVER_VALUE, _FAIL) = (0, 1, 3)
_MAX_NANOS = 1_000_000_000
_MICROSECOND = 1000  # nanoseconds


class Precondition(NamedTuple):
    """The version or the update time (in nanoseconds) that the stored entity must have."""

    base_version: int | None
    update_time: int | None
    must_hold: bool

    def is_met(self, version: int, described: str) -> bool:
        """Tell whether a stored entity's version, 0 for a missing one, is the expected one.

        A version is the microseconds of the update time. `described` names the entity.

        Raises:
            errors.FailedPrecondition: it is not, and the mutation says that the commit then fails.
            errors.InvalidArgument: the entity exists and has never had so high a version.
        """
        if self.base_version is not None and 0 < version < self.base_version:
            raise errors.InvalidArgument(
                f"Invalid base version, it is greater than the stored version: {described}"
            )
        expected = self.base_version
        found = version
        if self.update_time is not None:
            expected, found = self.update_time, version * _MICROSECOND
        if expected == found:
            return True
        if self.must_hold:
            raise errors.FailedPrecondition(
                f"the stored version ({found}) does not match the required base version "
                f"({expected}): {described}"
            )
        return False


def of(mutation: protobufs.Mutation, *, is_insert: bool) -> Precondition | None:
    """Return what a mutation expects. `is_insert`: the operation wants no entity to be there.

    Raises:
        errors.InvalidArgument: it expects what can never be.
    """
    strategy = mutation.conflict_resolution_strategy
    kind = mutation.WhichOneof("conflict_detection_strategy")
    if kind is None:
        if strategy:
            raise errors.InvalidArgument(
                "A conflict_resolution_strategy needs a base_version or an update_time."
            )
        return None
    if strategy not in _STRATEGIES:
        raise errors.InvalidArgument(f"The conflict_resolution_strategy {strategy} is unknown.")
    must_hold = strategy == _FAIL
    if kind == "update_time":
        return Precondition(None, _update_time(mutation, is_insert=is_insert), must_hold)
    if mutation.base_version < 0:
        raise errors.InvalidArgument("A base version is negative.")
    if is_insert and mutation.base_version:
        raise errors.InvalidArgument(
            "Cannot insert an entity with a base version greater than zero"
        )
    return Precondition(mutation.base_version, None, must_hold)


def _update_time(mutation: protobufs.Mutation, *, is_insert: bool) -> int:
    if is_insert:
        raise errors.InvalidArgument("Cannot insert an entity with an update time")
    given = mutation.update_time
    nanos = given.seconds * _MAX_NANOS + given.nanos
    if nanos <= 0 or not 0 <= given.nanos < _MAX_NANOS:
        raise errors.InvalidArgument("An update time is no time after 1970.")
    return nanos
