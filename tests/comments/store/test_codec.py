"""The codec writes the same bytes as Google's library NDB, which wrote the oldest stores."""

from collections.abc import Iterator
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
from datastore_emulator import inprocess, testing
from tests.comments import kinds

KINDS = kinds.stored()
TIMES = st.datetimes(
    datetime(1900, 1, 1),  # noqa: DTZ001 - the strategy adds the zone
    datetime(9999, 12, 30),  # noqa: DTZ001 - same
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7))]),
)
VALUES: dict[tuple[str, bool], st.SearchStrategy[Any]] = {
    ("string_value", True): st.text(max_size=50),
    ("string_value", False): st.text(max_size=2_000),
    ("integer_value", True): st.integers(-(2**63), 2**63 - 1),
    ("boolean_value", True): st.booleans(),
    ("blob_value", False): st.binary(max_size=100),
    (schema.TIME, True): TIMES,
}
NDB: dict[str, Any] = {
    "integer_value": ndb.IntegerProperty,
    "boolean_value": ndb.BooleanProperty,
    "blob_value": ndb.BlobProperty,
    schema.TIME: ndb.DateTimeProperty,
}


@pytest.fixture
def ndb_context() -> Iterator[None]:
    """A context in which NDB makes keys."""
    engine = inprocess.open_engine(None)
    with testing.ndb_client(inprocess.Channel(engine)).context():
        yield
    engine.close()


def values_of(data: st.DataObject, kind: type[schema.StoredRow]) -> dict[str, Any]:
    found = {}
    for name, each in kind.COLUMNS.items():
        form = (each.field, each.is_indexed)
        values = VALUES[form if form in VALUES else (each.field, True)]
        if each.is_repeated:
            found[name] = data.draw(st.lists(values, max_size=3))
        elif each.is_required:
            found[name] = data.draw(values)
        elif data.draw(st.booleans()):
            found[name] = data.draw(st.none() | values)  # type: ignore[arg-type]
    row = kind(key=schema.RowKey(kind, "a name"), **found)
    derived = {name: each.derive(row) for name, each in kind.COLUMNS.items() if each.derive}
    return found | derived


def _message(row: schema.StoredRow) -> Any:
    return codec.message(row, connection.current().key(*row.key))


def _in_ndb(kind: type[schema.StoredRow]) -> Any:
    """Declare a kind with NDB."""

    def declared(each: schema.Property[Any]) -> Any:
        options: dict[str, Any] = {"required": each.is_required, "repeated": each.is_repeated}
        if each.default is not None:
            options["default"] = each.default
        if each.field == schema.TIME:
            options["tzinfo"] = UTC
        if each.field == "string_value":
            return (ndb.StringProperty if each.is_indexed else ndb.TextProperty)(**options)
        return NDB[each.field](indexed=each.is_indexed, **options)

    properties = {name: declared(each) for name, each in kind.COLUMNS.items()}
    return type(kind.KIND, (ndb.Model,), properties)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_row_is_sent_and_read_as_by_ndb(
    store: connection.Store, ndb_context: None, kind: type[schema.StoredRow], data: st.DataObject
) -> None:
    values, model = values_of(data, kind), _in_ndb(kind)
    row = kind(key=schema.RowKey(kind, "a name"), **values)
    sent = _message(row)
    theirs = ndb.model._entity_to_protobuf(  # type: ignore[attr-defined]
        model(key=ndb.Key(kind.KIND, "a name"), **values)
    )._pb
    assert {name: str(each) for name, each in sent.properties.items()} == {
        name: str(each) for name, each in theirs.properties.items()
    }
    assert codec.row(row.key, sent) == codec.row(row.key, theirs) == row


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("site", 7),
        ("site", "a" * 1501),
        ("site", "\N{SNOWMAN}" * 501),
        ("body", "\ud800"),
        ("level", "1"),
        ("level", 1.5),
        ("level", 1 << 63),
        ("created", "2026-11-23"),
        ("created", datetime(2026, 11, 23)),  # noqa: DTZ001 - refused, because it has no zone
        ("fingerprint", 7),
        ("categories", [7]),
    ],
)
def test_a_value_of_the_wrong_type_or_length_is_refused(
    store: connection.Store, name: str, given: object
) -> None:
    row = comment_rows.CommentRow(key=comment_rows.comment_key("a"))
    row.populate(**_required(comment_rows.CommentRow) | {name: given})
    with pytest.raises((TypeError, ValueError, AttributeError)):
        _message(row)


def _required(kind: type[schema.StoredRow]) -> dict[str, Any]:
    values = {
        "string_value": "",
        "integer_value": 0,
        "boolean_value": False,
        schema.TIME: datetime.now(UTC),
    }
    return {name: values[each.field] for name, each in kind.COLUMNS.items() if each.is_required}


def test_the_longest_indexed_text_is_stored(store: connection.Store) -> None:
    for longest in ("a" * 1500, "\N{SNOWMAN}" * 500):
        row = comment_rows.CommentRow(
            key=comment_rows.comment_key("a"),
            **_required(comment_rows.CommentRow) | {"site": longest},
        )
        assert _message(row).properties["site"].string_value == longest


def test_a_key_is_its_path() -> None:
    key = counter_rows.participation_key(records.ThreadName("demo", "page"), "someone")
    assert key == (("Thread", "demo/page"), ("Participation", "someone"))
    assert key == schema.RowKey("Thread", "demo/page", "Participation", "someone")
    assert (key.kind(), key.id()) == ("Participation", "someone")


def test_a_row_refuses_a_key_of_another_kind_and_names_that_it_does_not_have() -> None:
    with pytest.raises(TypeError, match="Comment"):
        comment_rows.CommentRow(key=comment_rows.site_key("demo"))
    with pytest.raises(TypeError, match="nothing"):
        comment_rows.CommentRow(key=comment_rows.comment_key("a"), nothing=1)


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
