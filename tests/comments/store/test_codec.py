"""The codec writes the same protobuf bytes as NDB and reads the same values."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from google.cloud import ndb
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comments.domain import records
from comments.store import connection
from comments.store.models import comment_rows, counter_rows, schema
from comments.store.wire import codec
from tests.comments import kinds

KINDS = kinds.stored()
TIMES = st.datetimes(
    datetime(1900, 1, 1),  # noqa: DTZ001 - the strategy adds the zone
    datetime(9999, 12, 30),  # noqa: DTZ001 - same
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7))]),
)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    schema.StringProperty: st.text(max_size=50),
    schema.TextProperty: st.text(max_size=2_000),
    schema.IntegerProperty: st.integers(-(2**63), 2**63 - 1),
    schema.BooleanProperty: st.booleans(),
    schema.BlobProperty: st.binary(max_size=100),
    schema.DateTimeProperty: TIMES,
}


class Odd(schema.StoredRow):
    """A kind with a property type that the codec does not support."""

    where = ndb.GeoPtProperty()  # type: ignore[attr-defined]


def _values(data: st.DataObject, kind: type[ndb.Model]) -> dict[str, Any]:
    found = {}
    for name, each in kind._properties.items():  # type: ignore[attr-defined]
        values = VALUES[type(each)]
        if each._repeated:
            found[name] = data.draw(st.lists(values, max_size=3))
        elif each._required:
            found[name] = data.draw(values)
        elif data.draw(st.booleans()):
            found[name] = data.draw(st.none() | values)  # type: ignore[arg-type]
    return found


def _message(row: ndb.Model) -> Any:
    path = row.key.pairs()
    return codec.message(row, connection.current().key(*path))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_row_is_sent_and_read_as_by_ndb(
    store: connection.Store, kind: type[ndb.Model], data: st.DataObject
) -> None:
    row = kind(key=ndb.Key(kind, "a name"), **_values(data, kind))
    sent = _message(row)
    theirs = ndb.model._entity_to_protobuf(row)  # type: ignore[attr-defined]
    assert sent.SerializeToString(deterministic=True) == theirs._pb.SerializeToString(
        deterministic=True
    )
    assert codec.row(row.key, sent) == ndb.model._entity_from_protobuf(theirs) == row  # type: ignore[attr-defined]


def test_a_row_that_was_read_may_be_changed_and_sent(store: connection.Store) -> None:
    key = counter_rows.thread_counter_key(records.ThreadName("demo", "page"), 0)
    stored = _message(counter_rows.CounterRow(key=key, scope="thread/demo/page", shards=2))
    row: Any = codec.row(key, stored)
    row.shards += 1
    assert _message(row).properties["shards"].integer_value == 3


def test_a_missing_property_has_its_default_and_an_unknown_one_is_dropped(
    store: connection.Store,
) -> None:
    key = comment_rows.site_key("demo")
    stored = _message(comment_rows.SiteRow(key=key, digits="AB", width=2, cdn_seconds=5))
    del stored.properties["cdn_seconds"], stored.properties["origins"]
    stored.properties["gone"].string_value = "of an older version"
    row: Any = codec.row(key, stored)
    assert (row.width, row.cdn_seconds, row.origins) == (2, 0, [])
    assert "gone" not in _message(row).properties


def test_a_required_property_without_a_value_is_refused(store: connection.Store) -> None:
    with pytest.raises(ValueError, match="width"):
        _message(comment_rows.SiteRow(key=comment_rows.site_key("demo"), digits="AB"))


def test_a_kind_with_an_unsupported_property_is_refused(store: connection.Store) -> None:
    with pytest.raises(TypeError, match=r"Odd\.where"):
        _message(Odd(key=ndb.Key(Odd, "one")))
