"""Type stubs for the generated message classes, as far as the engine uses them."""

# ruff: noqa: N802, PYI021 - protobuf chose the names; a module says what it owns

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self, TypeAlias, TypeVar

_M = TypeVar("_M")

class Request(Protocol):
    @property
    def project_id(self) -> str: ...
    @property
    def database_id(self) -> str: ...
    def ByteSize(self) -> int: ...

class ReadRequest(Request, Protocol):
    @property
    def read_options(self) -> ReadOptions: ...

class ExplainedRequest(Protocol):
    @property
    def explain_options(self) -> _ExplainOptions: ...
    def HasField(self, name: str) -> bool: ...

class QueryRequest(ReadRequest, Protocol):
    @property
    def partition_id(self) -> PartitionId: ...

class _Message:
    def __init__(self, **fields: object) -> None: ...
    def ByteSize(self) -> int: ...
    def ClearField(self, name: str) -> None: ...
    def CopyFrom(self, other: Self) -> None: ...
    def HasField(self, name: str) -> bool: ...
    def MergeFromString(self, serialized: bytes) -> int: ...
    def SetInParent(self) -> None: ...
    def SerializeToString(self, *, deterministic: bool = ...) -> bytes: ...
    def WhichOneof(self, group: str) -> str | None: ...
    @classmethod
    def FromString(cls, serialized: bytes) -> Self: ...

class _Repeated(Sequence[_M]):
    def append(self, item: _M) -> None: ...
    def __getitem__(self, place: Any) -> Any: ...
    def __len__(self) -> int: ...
    def extend(self, items: Iterable[_M]) -> None: ...
    def add(self, **fields: object) -> _M: ...

class _Properties(Mapping[str, Value]):
    def __getitem__(self, name: str) -> Value: ...
    def __delitem__(self, name: str) -> None: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

class _Int(_Message):
    value: int

class Timestamp(_Message):
    seconds: int
    nanos: int
    def FromDatetime(self, moment: dt.datetime) -> None: ...
    def FromMicroseconds(self, micros: int) -> None: ...
    def ToJsonString(self) -> str: ...

class LatLng(_Message):
    latitude: float
    longitude: float

class PartitionId(_Message):
    project_id: str
    database_id: str
    namespace_id: str

class PathElement(_Message):
    kind: str
    id: int
    name: str

class Key(_Message):
    partition_id: PartitionId
    path: _Repeated[PathElement]

class _Array(_Message):
    values: _Repeated[Value]

class Value(_Message):
    null_value: int
    boolean_value: bool
    integer_value: int
    double_value: float
    timestamp_value: Timestamp
    key_value: Key
    string_value: str
    blob_value: bytes
    geo_point_value: LatLng
    entity_value: Entity
    array_value: _Array
    meaning: int
    exclude_from_indexes: bool

class Entity(_Message):
    key: Key
    properties: _Properties

class EntityResult(_Message):
    entity: Entity
    version: int
    create_time: Timestamp
    update_time: Timestamp
    cursor: bytes

class PropertyReference(_Message):
    name: str

class _Projection(_Message):
    property: PropertyReference

class Order(_Message):
    property: PropertyReference
    direction: int

Orders: TypeAlias = Iterable[Order]

class CompositeFilter(_Message):
    op: int
    filters: _Repeated[Filter]

class PropertyFilter(_Message):
    property: PropertyReference
    op: int
    value: Value

class Filter(_Message):
    composite_filter: CompositeFilter
    property_filter: PropertyFilter

class Query(_Message):
    projection: _Repeated[_Projection]
    kind: _Repeated[PropertyReference]
    filter: Filter
    order: _Repeated[Order]
    distinct_on: _Repeated[PropertyReference]
    start_cursor: bytes
    end_cursor: bytes
    offset: int
    limit: _Int

class _Count(_Message):
    up_to: _Int

class _OverProperty(_Message):
    property: PropertyReference

class Aggregation(_Message):
    count: _Count
    sum: _OverProperty
    avg: _OverProperty
    alias: str

class AggregationQuery(_Message):
    nested_query: Query
    aggregations: _Repeated[Aggregation]

class GqlQueryParameter(_Message):
    value: Value
    cursor: bytes

class GqlQuery(_Message):
    query_string: str
    allow_literals: bool
    named_bindings: Mapping[str, GqlQueryParameter]
    positional_bindings: _Repeated[GqlQueryParameter]

class _ReadOnly(_Message):
    read_time: Timestamp

class _ReadWrite(_Message):
    previous_transaction: bytes

class TransactionOptions(_Message):
    read_write: _ReadWrite
    read_only: _ReadOnly

class ReadOptions(_Message):
    read_consistency: int
    transaction: bytes
    new_transaction: TransactionOptions
    read_time: Timestamp

class _Request(_Message):
    project_id: str
    database_id: str

class LookupRequest(_Request):
    property_mask: _Mask
    read_options: ReadOptions
    keys: _Repeated[Key]

class LookupResponse(_Message):
    found: _Repeated[EntityResult]
    missing: _Repeated[EntityResult]
    deferred: _Repeated[Key]
    transaction: bytes

class _ExplainOptions(_Message):
    analyze: bool

class _Struct(_Message):
    def update(self, values: Mapping[str, object]) -> None: ...

class _Duration(_Message):
    def FromNanoseconds(self, nanos: int) -> None: ...

class _PlanSummary(_Message):
    indexes_used: _Repeated[_Struct]

class ExecutionStats(_Message):
    results_returned: int
    execution_duration: _Duration
    read_operations: int
    debug_stats: _Struct

class ExplainMetrics(_Message):
    plan_summary: _PlanSummary
    execution_stats: ExecutionStats

class RunQueryRequest(_Request):
    explain_options: _ExplainOptions
    property_mask: _Mask
    partition_id: PartitionId
    read_options: ReadOptions
    query: Query
    gql_query: GqlQuery

class QueryResultBatch(_Message):
    entity_results: _Repeated[EntityResult]
    end_cursor: bytes
    more_results: int

class RunQueryResponse(_Message):
    batch: QueryResultBatch
    transaction: bytes

class RunAggregationQueryRequest(_Request):
    explain_options: _ExplainOptions
    partition_id: PartitionId
    read_options: ReadOptions
    aggregation_query: AggregationQuery
    gql_query: GqlQuery

class _AggregationResult(_Message):
    aggregate_properties: _Properties

class AggregationResultBatch(_Message):
    aggregation_results: _Repeated[_AggregationResult]
    more_results: int
    read_time: Timestamp

class RunAggregationQueryResponse(_Message):
    batch: AggregationResultBatch
    transaction: bytes

class BeginTransactionRequest(_Request):
    transaction_options: TransactionOptions

class BeginTransactionResponse(_Message):
    transaction: bytes

class Mutation(_Message):
    insert: Entity
    update: Entity
    upsert: Entity
    delete: Key
    base_version: int
    update_time: Timestamp
    conflict_resolution_strategy: int
    property_mask: _Mask
    property_transforms: _Repeated[PropertyTransform]

class _Mask(_Message):
    paths: Sequence[str]

class PropertyTransform(_Message):
    property: str
    set_to_server_value: int

class MutationResult(_Message):
    key: Key
    version: int
    conflict_detected: bool
    transform_results: _Repeated[Value]
    create_time: Timestamp
    update_time: Timestamp

class CommitRequest(_Request):
    mode: int
    transaction: bytes
    single_use_transaction: TransactionOptions
    mutations: _Repeated[Mutation]

class CommitResponse(_Message):
    mutation_results: _Repeated[MutationResult]
    index_updates: int
    commit_time: Timestamp

class RollbackRequest(_Request):
    transaction: bytes

class RollbackResponse(_Message): ...

class AllocateIdsRequest(_Request):
    keys: _Repeated[Key]

class AllocateIdsResponse(_Message):
    keys: _Repeated[Key]

class ReserveIdsRequest(_Request):
    keys: _Repeated[Key]

class ReserveIdsResponse(_Message): ...

# Any, because the code looks up the class by the RPC's name.
REQUESTS: dict[str, Any]
RESPONSES: dict[str, Any]

def varint(number: int) -> bytes: ...
def field(number: int, content: bytes) -> bytes: ...
def opening(number: int, size: int) -> bytes: ...
def number_field(number: int, value: int) -> bytes: ...
def timestamp(micros: int) -> bytes: ...
def end_of_key(stored: bytes) -> int: ...
