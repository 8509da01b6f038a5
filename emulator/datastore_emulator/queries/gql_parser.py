"""GQL: convert a query's text to the message that RunQuery or RunAggregationQuery executes.

The grammar is the one in Google's GQL reference, with AND binding closer than OR. The parser knows
only the grammar; `parser` later checks what a query may contain, as it does for all query messages.

The query's kind may qualify a property: after FROM T, T.a means the property a.
"""

from __future__ import annotations

from datastore_emulator import protobufs
from datastore_emulator.queries.gql_tokens import END, NAME, Token, Tokens
from datastore_emulator.queries.gql_values import Values

Parts = tuple[str, ...]

_LESS, _LESS_OR_EQUAL, _GREATER, _GREATER_OR_EQUAL, _EQUAL, _IN = range(1, 7)
_NOT_EQUAL, _HAS_ANCESTOR, _NOT_IN = 9, 11, 13
_AND, _OR = 1, 2
_ASCENDING, _DESCENDING = 1, 2
_COMPARATORS = {
    "=": _EQUAL, "!=": _NOT_EQUAL, "<": _LESS, "<=": _LESS_OR_EQUAL, ">": _GREATER,
    ">=": _GREATER_OR_EQUAL,
}  # fmt: skip
_MIRRORED = {
    _LESS: _GREATER, _LESS_OR_EQUAL: _GREATER_OR_EQUAL, _GREATER: _LESS,
    _GREATER_OR_EQUAL: _LESS_OR_EQUAL,
}  # fmt: skip


def query(given: protobufs.GqlQuery, partition: protobufs.PartitionId) -> protobufs.Query:
    """Parse the text of RunQuery.

    Raises:
        errors.InvalidArgument: The text is not a valid query, or its bindings do not match.
    """
    return _Parser(given, partition).query()


def aggregation_query(
    given: protobufs.GqlQuery, partition: protobufs.PartitionId
) -> protobufs.AggregationQuery:
    """Parse the text of RunAggregationQuery; raises the same errors as `query`."""
    return _Parser(given, partition).aggregation_query()


class _Parser:
    def __init__(self, given: protobufs.GqlQuery, partition: protobufs.PartitionId) -> None:
        self._tokens = Tokens(given.query_string)
        self._values = Values(given, partition, self._tokens)
        self._kind = ""

    def query(self) -> protobufs.Query:
        query = self._query()
        self._end()
        return query

    def aggregation_query(self) -> protobufs.AggregationQuery:
        parsed = protobufs.AggregationQuery()
        is_piped = self._tokens.require("SELECT", "AGGREGATE").type == "AGGREGATE"
        sums = self._aggregations(parsed)
        if is_piped:
            self._tokens.require("OVER")
            self._tokens.open()
            parsed.nested_query.CopyFrom(self._query())
            self._tokens.close()
        else:
            parsed.nested_query.SetInParent()
            self._from(parsed.nested_query)
            self._where(parsed.nested_query)
        for reference, name in sums:
            reference.name = self._name(name)
        self._end()
        return parsed

    def _end(self) -> None:
        self._tokens.require(END)
        self._values.check_positions()

    def _query(self) -> protobufs.Query:
        query = protobufs.Query()
        self._tokens.require("SELECT")
        grouped, projected = self._selection()
        self._from(query)
        for parts in grouped:
            query.distinct_on.add(name=self._name(parts))
        for parts in projected:
            query.projection.add().property.name = self._name(parts)
        self._where(query)
        self._order(query)
        self._limit(query)
        self._offset(query)
        return query

    def _aggregations(
        self, parsed: protobufs.AggregationQuery
    ) -> list[tuple[protobufs.PropertyReference, Parts]]:
        """Take the aggregations; return the properties whose names depend on the kind."""
        sums: list[tuple[protobufs.PropertyReference, Parts]] = []
        while True:
            made = parsed.aggregations.add()
            function = self._tokens.require("COUNT", "COUNT_UP_TO", "SUM", "AVG")
            self._tokens.open()
            if function.type == "COUNT":
                self._tokens.require("*")
                made.count.SetInParent()
            elif function.type == "COUNT_UP_TO":
                made.count.up_to.value = self._values.count()
            else:
                over = made.sum if function.type == "SUM" else made.avg
                sums.append((over.property, self._property()))
            self._tokens.close()
            if self._tokens.take("AS"):
                made.alias = self._tokens.require(NAME).text
            if not self._tokens.take(","):
                return sums

    def _selection(self) -> tuple[list[Parts], list[Parts]]:
        """Take the clause after SELECT; return the grouping and the projected properties."""
        if not self._tokens.take("DISTINCT"):
            return [], self._all_or_properties()
        if not self._tokens.take("ON"):
            names = self._properties()
            return names, names
        self._tokens.open()
        names = self._properties()
        self._tokens.close()
        return names, self._all_or_properties()

    def _all_or_properties(self) -> list[Parts]:
        return [] if self._tokens.take("*") else self._properties()

    def _properties(self) -> list[Parts]:
        names = [self._property()]
        while self._tokens.take(","):
            names.append(self._property())
        return names

    def _property(self) -> Parts:
        parts = [self._tokens.require(NAME).text]
        while self._tokens.take("."):
            parts.append(self._tokens.require(NAME).text)
        return tuple(parts)

    def _name(self, parts: Parts) -> str:
        is_qualified = len(parts) > 1 and parts[0] == self._kind
        return ".".join(parts[is_qualified:])

    def _from(self, query: protobufs.Query) -> None:
        if self._tokens.take("FROM"):
            self._kind = self._tokens.require(NAME).text
            query.kind.add(name=self._kind)

    def _where(self, query: protobufs.Query) -> None:
        if self._tokens.take("WHERE"):
            query.filter.CopyFrom(self._alternatives())

    def _alternatives(self) -> protobufs.Filter:
        filters = [self._conjunction()]
        while self._tokens.take("OR"):
            filters.append(self._conjunction())
        return _combine(_OR, filters)

    def _conjunction(self) -> protobufs.Filter:
        filters = [self._term()]
        while self._tokens.take("AND"):
            filters.append(self._term())
        return _combine(_AND, filters)

    def _term(self) -> protobufs.Filter:
        if self._tokens.next.type != "(":
            return self._condition()
        self._tokens.open()
        inner = self._alternatives()
        self._tokens.close()
        return inner

    def _condition(self) -> protobufs.Filter:
        made = protobufs.Filter()
        if self._values.is_next():
            self._fill_backward(made.property_filter)
        elif self._tokens.next.type == NAME:
            self._fill_forward(made.property_filter)
        else:
            self._tokens.fail("(", "a property", "a value")
        return made

    def _fill_forward(self, made: protobufs.PropertyFilter) -> None:
        made.property.name = self._name(self._property())
        token = self._tokens.require(*_COMPARATORS, "IN", "CONTAINS", "NOT", "HAS", "IS")
        if token.type == "IS":
            null = self._tokens.require("NULL")
            self._values.check_literal(null)
            made.op, made.value.null_value = _EQUAL, 0
            return
        if token.type in ("NOT", "HAS"):
            self._tokens.require({"NOT": "IN", "HAS": "ANCESTOR"}[token.type])
        made.value.CopyFrom(self._values.value())
        made.op = _operator(token, made.value)

    def _fill_backward(self, made: protobufs.PropertyFilter) -> None:
        made.value.CopyFrom(self._values.value())
        token = self._tokens.require(*_COMPARATORS, "IN", "HAS")
        if token.type == "HAS":
            self._tokens.require("DESCENDANT")
        made.property.name = self._name(self._property())
        operator = _operator(token, made.value)
        made.op = _MIRRORED.get(operator, operator)

    def _order(self, query: protobufs.Query) -> None:
        if not self._tokens.take("ORDER"):
            return
        self._tokens.require("BY")
        self._add_order(query)
        while self._tokens.take(","):
            self._add_order(query)

    def _add_order(self, query: protobufs.Query) -> None:
        order = query.order.add()
        order.property.name = self._name(self._property())
        direction = self._tokens.take("ASC", "DESC")
        is_descending = direction is not None and direction.type == "DESC"
        order.direction = _DESCENDING if is_descending else _ASCENDING

    def _limit(self, query: protobufs.Query) -> None:
        if not self._tokens.take("LIMIT"):
            return
        is_first = self._tokens.is_call() and self._tokens.next.text.upper() == "FIRST"
        positions = self._first() if is_first else [self._values.position("limit")]
        for position in positions:
            if isinstance(position, bytes):
                query.end_cursor = position
            else:
                query.limit.value = position

    def _first(self) -> list[int | bytes]:
        token = self._tokens.require(NAME)
        self._tokens.open()
        first = self._values.position("limit")
        self._tokens.require(",")
        second = self._values.position("limit")
        self._tokens.close()
        if isinstance(first, bytes) == isinstance(second, bytes):
            self._tokens.refuse(token, "FIRST needs one cursor and one count")
        return [first, second]

    def _offset(self, query: protobufs.Query) -> None:
        if not self._tokens.take("OFFSET"):
            return
        first = self._values.position("offset")
        if not isinstance(first, bytes):
            query.offset = first
            return
        query.start_cursor = first
        if self._tokens.take("+"):
            token = self._tokens.next
            count = self._values.position("offset")
            if isinstance(count, bytes):
                self._tokens.refuse(token, "after a cursor and +, the offset must be a count")
            query.offset = count


def _combine(operator: int, filters: list[protobufs.Filter]) -> protobufs.Filter:
    if len(filters) == 1:
        return filters[0]
    made = protobufs.Filter()
    made.composite_filter.op = operator
    made.composite_filter.filters.extend(filters)
    return made


def _operator(token: Token, value: protobufs.Value) -> int:
    """Return a comparator's operator; IN and CONTAINS mean = unless the value is an array."""
    if token.type in _COMPARATORS:
        return _COMPARATORS[token.type]
    if token.type == "HAS":
        return _HAS_ANCESTOR
    if token.type == "NOT":
        return _NOT_IN
    return _IN if value.WhichOneof("value_type") == "array_value" else _EQUAL
