"""Everything the engine refuses, in one tree.

    DatastoreError
    ├── InvalidArgument          the request can never work
    ├── NotFound                 an update of a missing entity
    ├── AlreadyExists            an insert of an existing entity
    ├── FailedPrecondition
    │   ├── MissingIndex         a query that index.yaml does not serve
    │   ├── Damaged              the data file is not as the engine left it
    │   └── EngineFault          a fault of the engine itself
    ├── Aborted                  a conflict: run the transaction again
    ├── Cancelled                a long-running operation whose caller ended it
    ├── DeadlineExceeded
    ├── ResourceExhausted
    ├── Unavailable              the data file is busy: call again
    │   └── Dropped              on purpose: the connection is cut without an answer
    ├── Unimplemented            known to the API, not built here
    └── Injected                 on purpose, with any status

Every class names its gRPC status in `status`; the servers map that name and nothing else. An engine
fault is FAILED_PRECONDITION on purpose: clients retry INTERNAL and UNKNOWN for seconds, which
hides a fault that will not go away.
"""


class DatastoreError(Exception):
    """A request that is answered with a status other than OK."""

    status = "UNKNOWN"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidArgument(DatastoreError):
    """The request is wrong whatever the data is."""

    status = "INVALID_ARGUMENT"


class NotFound(DatastoreError):
    """The entity to update does not exist."""

    status = "NOT_FOUND"


class AlreadyExists(DatastoreError):
    """The entity to insert exists."""

    status = "ALREADY_EXISTS"


class FailedPrecondition(DatastoreError):
    """The service is not in the state that the request needs."""

    status = "FAILED_PRECONDITION"


class MissingIndex(FailedPrecondition):
    """The query needs a composite index that is not defined."""

    def __init__(self, recommended: str) -> None:
        super().__init__(f"no matching index found. recommended index is:\n{recommended}")
        self.recommended = recommended


class Damaged(FailedPrecondition):
    """The data file is not as the engine left it. Restore a backup."""


class EngineFault(FailedPrecondition):
    """The engine itself is at fault. Calling again does not help."""


class Aborted(DatastoreError):
    """A transaction lost against another one."""

    status = "ABORTED"


class Cancelled(DatastoreError):
    """A long-running operation was ended by CancelOperation, or with the server."""

    status = "CANCELLED"


class DeadlineExceeded(DatastoreError):
    """The answer did not come in time. The request may have been applied."""

    status = "DEADLINE_EXCEEDED"


class ResourceExhausted(DatastoreError):
    """Too much is open or stored."""

    status = "RESOURCE_EXHAUSTED"


class Unavailable(DatastoreError):
    """The data file cannot be had now."""

    status = "UNAVAILABLE"


class Unimplemented(DatastoreError):
    """A part of the API that this engine does not have."""

    status = "UNIMPLEMENTED"

    def __init__(self, feature: str) -> None:
        super().__init__(f"{feature} is not implemented by this emulator")
        self.feature = feature


class Dropped(Unavailable):
    """A fault plan cuts the connection; in process, where there is none, it is UNAVAILABLE."""


class Injected(DatastoreError):
    """A fault plan answers in the engine's place."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status
