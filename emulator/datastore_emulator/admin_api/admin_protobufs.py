"""The protobuf classes for the Datastore Admin API and long-running operations.

Owns the only import of these classes. The first admin API call loads these classes. An embedded
engine never loads them, nor does a server that receives no such call. As in `protobufs`, these are
the raw classes, not their proto-plus wrappers.
"""

from typing import Any

from google.cloud.datastore_admin_v1.types import datastore_admin as _definitions
from google.longrunning import operations_pb2  # type: ignore[import-untyped]  # has no stubs
from google.protobuf import descriptor_pool, empty_pb2, message_factory
from google.rpc import code_pb2, status_pb2  # type: ignore[import-untyped]  # has no stubs

_PACKAGE = _definitions.__protobuf__.package

# The generated classes have no more precise type.
Message = Any
MessageClass = Any


def _message_class(name: str) -> MessageClass:
    descriptor = descriptor_pool.Default().FindMessageTypeByName(f"{_PACKAGE}.{name}")
    return message_factory.GetMessageClass(descriptor)


EntityFilter = _message_class("EntityFilter")
ExportEntitiesMetadata = _message_class("ExportEntitiesMetadata")
ExportEntitiesResponse = _message_class("ExportEntitiesResponse")
ImportEntitiesMetadata = _message_class("ImportEntitiesMetadata")
Index = _message_class("Index")
IndexOperationMetadata = _message_class("IndexOperationMetadata")
ListIndexesResponse = _message_class("ListIndexesResponse")
ListOperationsResponse = operations_pb2.ListOperationsResponse
Operation = operations_pb2.Operation
Empty = empty_pb2.Empty
Status = status_pb2.Status

REQUESTS: dict[str, MessageClass] = {
    **{
        name: _message_class(f"{name}Request")
        for name in (
            "ListIndexes",
            "GetIndex",
            "CreateIndex",
            "DeleteIndex",
            "ExportEntities",
            "ImportEntities",
        )
    },
    **{
        name: getattr(operations_pb2, f"{name}Request")
        for name in (
            "ListOperations",
            "GetOperation",
            "CancelOperation",
            "DeleteOperation",
            "WaitOperation",
        )
    },
}

CommonMetadata = _message_class("CommonMetadata")
OperationType = descriptor_pool.Default().FindEnumTypeByName(f"{_PACKAGE}.OperationType")


def operation_type(name: str) -> int:
    """Return the enum number of an operation type."""
    return int(OperationType.values_by_name[name].number)


def code(status: str) -> int:
    """Return the number that google.rpc.Code assigns to a status."""
    return int(code_pb2.Code.Value(status))
