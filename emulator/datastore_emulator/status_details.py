"""The details of an error in gRPC's form: a google.rpc.ErrorInfo for a storage fault.

The statuses alone do not tell clients whether a fault goes away on its own.
"""

from typing import Any

import grpc

from datastore_emulator import errors

Metadata = tuple[Any, ...]  # Pairs of a name and bytes
_DOMAIN = "emulator"
_KEY = "grpc-status-details-bin"


def of(error: errors.DatastoreError) -> Metadata:
    """Return the trailing metadata for an error."""
    if not isinstance(error, errors.StorageFault):
        return ()
    # Import here, because hardly any process needs these modules.
    from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]  # noqa: PLC0415

    info = error_details_pb2.ErrorInfo(
        reason=error.reason, domain=_DOMAIN, metadata={"path": error.path}
    )
    code: int = grpc.StatusCode[error.status].value[0]
    status = status_pb2.Status(code=code, message=error.message)
    status.details.add().Pack(info)
    return ((_KEY, status.SerializeToString()),)
