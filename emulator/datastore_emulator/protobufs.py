"""The protobuf classes of google.datastore.v1, and a hand-written encoder for a few fields.

Owns the only import of the message definitions, and the protobuf wire format. Engine code uses the
raw classes, because their proto-plus wrappers cost more than a whole query.

Query results are copied as bytes, not parsed: an EntityResult is the stored Entity bytes after a
tag and a length.
"""

import functools

from google.cloud.datastore_v1.types import datastore as _definitions
from google.protobuf import descriptor_pool, message_factory

_MORE = 0x80  # Set in every byte of a varint except the last one
_PACKAGE = _definitions.__protobuf__.package


def _message_class(name):
    descriptor = descriptor_pool.Default().FindMessageTypeByName(f"{_PACKAGE}.{name}")
    return message_factory.GetMessageClass(descriptor)


AggregationQuery = _message_class("AggregationQuery")
AggregationResultBatch = _message_class("AggregationResultBatch")
AllocateIdsRequest = _message_class("AllocateIdsRequest")
AllocateIdsResponse = _message_class("AllocateIdsResponse")
BeginTransactionRequest = _message_class("BeginTransactionRequest")
BeginTransactionResponse = _message_class("BeginTransactionResponse")
CommitRequest = _message_class("CommitRequest")
CommitResponse = _message_class("CommitResponse")
Entity = _message_class("Entity")
EntityResult = _message_class("EntityResult")
ExplainMetrics = _message_class("ExplainMetrics")
Filter = _message_class("Filter")
Key = _message_class("Key")
LookupRequest = _message_class("LookupRequest")
LookupResponse = _message_class("LookupResponse")
Mutation = _message_class("Mutation")
MutationResult = _message_class("MutationResult")
PartitionId = _message_class("PartitionId")
PropertyFilter = _message_class("PropertyFilter")
Query = _message_class("Query")
QueryResultBatch = _message_class("QueryResultBatch")
ReadOptions = _message_class("ReadOptions")
ReserveIdsRequest = _message_class("ReserveIdsRequest")
ReserveIdsResponse = _message_class("ReserveIdsResponse")
RollbackRequest = _message_class("RollbackRequest")
RollbackResponse = _message_class("RollbackResponse")
RunAggregationQueryRequest = _message_class("RunAggregationQueryRequest")
RunAggregationQueryResponse = _message_class("RunAggregationQueryResponse")
RunQueryRequest = _message_class("RunQueryRequest")
RunQueryResponse = _message_class("RunQueryResponse")
TransactionOptions = _message_class("TransactionOptions")
Value = _message_class("Value")

REQUESTS = {
    "Lookup": LookupRequest,
    "RunQuery": RunQueryRequest,
    "RunAggregationQuery": RunAggregationQueryRequest,
    "BeginTransaction": BeginTransactionRequest,
    "Commit": CommitRequest,
    "Rollback": RollbackRequest,
    "AllocateIds": AllocateIdsRequest,
    "ReserveIds": ReserveIdsRequest,
}
RESPONSES = {name: _message_class(f"{name}Response") for name in REQUESTS}


def varint(number):
    """Encode a non-negative number as a protobuf varint."""
    if number < _MORE:
        return _ONE_BYTE[number]
    parts = bytearray()
    while number >= _MORE:
        parts.append(number & 0x7F | _MORE)
        number >>= 7
    parts.append(number)
    return bytes(parts)


_ONE_BYTE = tuple(bytes((number,)) for number in range(_MORE))
_LOW_BYTE = tuple(bytes((number | _MORE,)) for number in range(_MORE))
_TAGS = tuple(varint(number << 3 | 2) for number in range(64))  # Wire type of such fields
_NUMBER_TAGS = tuple(varint(number << 3) for number in range(64))


def field(number, content):
    """Encode a length-delimited field: a message, string or bytes."""
    size = len(content)
    # Inlined for speed: a query result has four fields, and nearly all sizes fit in one or two
    # bytes.
    if size < _MORE:
        return _TAGS[number] + _ONE_BYTE[size] + content
    if size < _MORE * _MORE:
        return _TAGS[number] + _LOW_BYTE[size & 0x7F] + _ONE_BYTE[size >> 7] + content
    return _TAGS[number] + varint(size) + content


def opening(number, size):
    """Encode the tag and the length of a length-delimited field."""
    return _TAGS[number] + varint(size)


def number_field(number, value):
    """Encode a non-negative integer or enum field; like proto3, leave out zero."""
    if not value:
        return b""
    return _NUMBER_TAGS[number] + varint(value)


@functools.lru_cache(maxsize=256)
def timestamp(micros):
    """Encode non-negative microseconds since 1970 as a google.protobuf.Timestamp."""
    seconds, rest = divmod(micros, 1_000_000)
    return number_field(1, seconds) + number_field(2, rest * 1000)


def end_of_key(stored):
    """Return the position after the key in the bytes of a stored Entity.

    The engine writes the key as the first field, with the tag 0x0a.
    """
    size = 0
    position = 1
    shift = 0
    while True:
        byte = stored[position]
        size |= (byte & 0x7F) << shift
        position += 1
        shift += 7
        if byte < _MORE:
            break
    return position + size
