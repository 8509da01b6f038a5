"""Preconditions: the state of the stored entity that a mutation expects.

Owns `base_version`, `update_time` and conflict resolution. Pure.

Version 0 means that the entity does not exist. A base version that is higher than the stored
version is not a conflict but an invalid request. An earlier check decides whether an operation
(insert, update) accepts an existing or a missing entity.
"""

from __future__ import annotations

from typing import NamedTuple

from datastore_emulator import errors, protobufs

_STRATEGIES = (_UNSPECIFIED, _SERVER_VALUE, _FAIL) = (0, 1, 3)
_MAX_NANOS = 1_000_000_000
_MICROSECOND = 1000  # Nanoseconds


class Precondition(NamedTuple):
    """The version, or the update time in nanoseconds, that the stored entity must have."""

    base_version: int | None
    update_time: int | None
    must_hold: bool

    def is_met(self, version: int, described: str) -> bool:
        """Return whether a stored entity's version (0 if missing) is the expected version.

        A version is the update time in microseconds. Error messages use `described` as the entity's
        name.

        Raises:
            errors.FailedPrecondition: The version is not the expected one, and the mutation
                requires that the commit then fail.
            errors.InvalidArgument: The entity exists and has never had such a high version.
        """
        if self.base_version is not None and 0 < version < self.base_version:
            raise errors.InvalidArgument(
                f"Invalid base version, it is greater than the stored version: {described}"
            )
        expected = self.base_version
        actual = version
        if self.update_time is not None:
            expected, actual = self.update_time, version * _MICROSECOND
        if expected == actual:
            return True
        if self.must_hold:
            raise errors.FailedPrecondition(
                f"the stored version ({actual}) does not match the required base version "
                f"({expected}): {described}"
            )
        return False


def of(mutation: protobufs.Mutation, *, is_insert: bool) -> Precondition | None:
    """Return the precondition of a mutation, if any.

    Args:
        mutation: The mutation.
        is_insert: Whether the operation requires that the entity does not exist.

    Raises:
        errors.InvalidArgument: The precondition can never be met.
    """
    strategy = mutation.conflict_resolution_strategy
    kind = mutation.WhichOneof("conflict_detection_strategy")
    if kind is None:
        if strategy:
            raise errors.InvalidArgument(
                "A conflict_resolution_strategy requires a base_version or an update_time."
            )
        return None
    if strategy not in _STRATEGIES:
        raise errors.InvalidArgument(f"The conflict_resolution_strategy {strategy} is unknown.")
    must_hold = strategy == _FAIL
    if kind == "update_time":
        return Precondition(None, _update_time(mutation, is_insert=is_insert), must_hold)
    if mutation.base_version < 0:
        raise errors.InvalidArgument("A base version must not be negative.")
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
        raise errors.InvalidArgument("An update time must be later than 1970-01-01.")
    return nanos
