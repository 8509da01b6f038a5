"""The class hierarchy of all errors that the engine raises.

    DatastoreError
    ├── InvalidArgument          the request can never succeed
    ├── NotFound                 an update to a missing entity
    ├── AlreadyExists            an insert of an existing entity
    ├── FailedPrecondition
    │   ├── MissingIndex         a query that no index in index.yaml serves
    │   └── EngineFault          a bug in the engine itself
    ├── Aborted                  a conflict: run the transaction again
    ├── Cancelled                a long-running operation that was canceled
    ├── DeadlineExceeded
    ├── ResourceExhausted
    ├── Unavailable              the data file is busy: call again
    │   └── Dropped              a fault plan cuts the connection without an answer
    ├── StorageFault             calling again does not help until an operator acts
    │   ├── Damaged              the data file is damaged: FAILED_PRECONDITION
    │   ├── DiskFull             the disk is full: RESOURCE_EXHAUSTED
    │   └── Unwritable           the data file cannot be read or written: UNAVAILABLE
    ├── Unimplemented            a part of the API that this engine does not support
    └── Injected                 a fault plan answers with any status

Every class declares its gRPC status in `status`; the servers translate only that name. An engine
fault is deliberately FAILED_PRECONDITION: clients retry INTERNAL and UNKNOWN for several seconds,
which would hide a permanent fault.
"""

from typing import Self


class DatastoreError(Exception):
    """An error that the servers answer with a gRPC status other than OK."""

    status = "UNKNOWN"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidArgument(DatastoreError):
    """The request is invalid, regardless of the stored data."""

    status = "INVALID_ARGUMENT"


class NotFound(DatastoreError):
    """The entity to update does not exist."""

    status = "NOT_FOUND"


class AlreadyExists(DatastoreError):
    """The entity to insert already exists."""

    status = "ALREADY_EXISTS"


class FailedPrecondition(DatastoreError):
    """The service is not in the state that the request requires."""

    status = "FAILED_PRECONDITION"


class MissingIndex(FailedPrecondition):
    """The query needs a composite index that is not defined."""

    def __init__(self, recommended: str) -> None:
        super().__init__(f"no matching index found. recommended index is:\n{recommended}")
        self.recommended = recommended


class EngineFault(FailedPrecondition):
    """The engine has a bug. Retrying does not help."""


class Aborted(DatastoreError):
    """A transaction lost a conflict with another transaction."""

    status = "ABORTED"


class Cancelled(DatastoreError):
    """A long-running operation was ended by CancelOperation or by the server's shutdown."""

    status = "CANCELLED"


class DeadlineExceeded(DatastoreError):
    """The deadline passed before the response was ready. The request may have been applied."""

    status = "DEADLINE_EXCEEDED"


class ResourceExhausted(DatastoreError):
    """Too many transactions, operations or bytes are in use."""

    status = "RESOURCE_EXHAUSTED"


class Unavailable(DatastoreError):
    """The data file is temporarily unusable."""

    status = "UNAVAILABLE"


class StorageFault(DatastoreError):
    """The data file or its disk fails, and waiting does not help.

    `reason` names the fault for programs. gRPC sends it in a google.rpc.ErrorInfo, together with
    `path`, the data file's path, which the engine adds.
    """

    reason = ""
    path = ""

    def about(self, path: str) -> Self:
        """Return the same fault with the name of its file."""
        named = type(self)(self.message if path in self.message else f"{path}: {self.message}")
        named.path = path
        return named


class Damaged(StorageFault, FailedPrecondition):
    """The data file is damaged. Restore a backup."""

    reason = "DATA_DAMAGED"


class DiskFull(StorageFault, ResourceExhausted):
    """The disk has no space for the commit. No part of the commit is stored."""

    reason = "DISK_FULL"


class Unwritable(StorageFault, Unavailable):
    """The data file or its folder is read-only, or its disk fails."""

    reason = "DATA_UNWRITABLE"


class Unimplemented(DatastoreError):
    """The request uses a part of the API that this engine does not support."""

    status = "UNIMPLEMENTED"

    def __init__(self, feature: str) -> None:
        super().__init__(f"{feature} is not implemented by this emulator")
        self.feature = feature


class Dropped(Unavailable):
    """A fault plan cut the connection; in process, it raises UNAVAILABLE instead."""


class Injected(DatastoreError):
    """A fault plan replaced the engine's answer with an error."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status
