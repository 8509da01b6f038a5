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


def values_of(data: st.DataObject, kind: type[ndb.Model]) -> dict[str, Any]:
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
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_row_is_sent_and_read_as_by_ndb(
    store: connection.Store, kind: type[ndb.Model], data: st.DataObject
) -> None:
    row = kind(key=ndb.Key(kind, "a name"), **values_of(data, kind))
    sent = _message(row)
    theirs = ndb.model._entity_to_protobuf(row)  # type: ignore[attr-defined]
    assert sent.SerializeToString(deterministic=True) == theirs._pb.SerializeToString(
        deterministic=True
    )
    assert codec.row(row.key, sent) == ndb.model._entity_from_protobuf(theirs) == row  # type: ignore[attr-defined]


def test_a_row_that_ndb_has_read_is_sent_unchanged(store: connection.Store) -> None:
    now = datetime(2026, 11, 23, tzinfo=UTC)
    key = comment_rows.site_key("demo")
    comment_rows.SiteRow(key=key, digits="AB", width=2, origins=["https://a.example"]).put()
    moved = comment_rows.ThreadRow(key=comment_rows.thread_key_of("demo/page"), created=now)
    moved.site, moved.thread = "demo", "page"
    sent = _message(moved)
    theirs = ndb.model._entity_from_protobuf(  # type: ignore[attr-defined]
        ndb.model._entity_to_protobuf(moved)  # type: ignore[attr-defined]
    )
    assert _message(theirs) == sent
    assert _message(ndb.Key("Site", "demo").get()).properties["digits"].string_value == "AB"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("site", 7),
        ("site", "a" * 1501),
        ("site", "\N{SNOWMAN}" * 501),
        ("level", "1"),
        ("level", 1.5),
        ("listed", 1),
        ("created", "2026-11-23"),
        ("fingerprint", "text"),
        ("categories", "text"),
        ("categories", [7]),
    ],
)
def test_a_row_refuses_values_that_ndb_refuses(
    store: connection.Store, name: str, given: object
) -> None:
    row = comment_rows.CommentRow(key=comment_rows.comment_key("a"))
    with pytest.raises(Exception, match=r"xpected|at most"):
        setattr(row, name, given)
    with pytest.raises(Exception, match=r"xpected|at most"):
        comment_rows.CommentRow(key=comment_rows.comment_key("a"), **{name: given})


def test_a_row_accepts_the_longest_indexed_text(store: connection.Store) -> None:
    for longest in ("a" * 1500, "\N{SNOWMAN}" * 500):
        row = comment_rows.CommentRow(key=comment_rows.comment_key("a"), site=longest)
        assert row.site == longest


def test_keys_equal_those_of_ndb(store: connection.Store) -> None:
    key = counter_rows.participation_key(records.ThreadName("demo", "page"), "someone")
    theirs = ndb.Key("Thread", "demo/page", "Participation", "someone")  # type: ignore[call-arg, arg-type]
    assert key == theirs
    assert theirs == key
    assert hash(key) == hash(theirs)
    assert (key.kind(), key.id()) == (theirs.kind(), theirs.id()) == ("Participation", "someone")


_NAMES = st.text(min_size=1, max_size=20)


@given(
    path=st.lists(st.tuples(st.sampled_from(KINDS), _NAMES), min_size=1, max_size=3),
    above=st.none() | st.tuples(st.sampled_from(["Site", "Thread"]), _NAMES),
    other=st.lists(st.tuples(st.sampled_from(KINDS), _NAMES), min_size=1, max_size=2),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_key_is_in_every_respect_that_of_ndb(
    store: connection.Store, path: list[Any], above: Any, other: list[Any]
) -> None:
    flat = [part for pair in path for part in pair]
    parent = None if above is None else schema.RowKey(*above)
    key: Any = schema.RowKey(*flat, parent=parent)
    theirs: Any = ndb.Key(*(above or ()), *flat)
    for name in ("kind", "id", "flat", "pairs", "parent", "root", "urlsafe", "string_id", "app"):
        assert getattr(key, name)() == getattr(theirs, name)()
    assert hash(key) == hash(theirs)
    assert key == theirs == schema.RowKey(*flat, parent=parent)
    beside: list[Any] = [part for pair in other for part in pair]
    for each in (schema.RowKey(*beside), ndb.Key(*beside)):
        assert (key == each) == (theirs == ndb.Key(*beside))
        assert (key != each) == (theirs != ndb.Key(*beside))
    assert key != key.flat()
    assert ndb.Key("Below", "x", parent=key) == ndb.Key("Below", "x", parent=theirs)


def test_a_row_refuses_a_key_of_another_kind_and_names_that_it_does_not_have(
    store: connection.Store,
) -> None:
    with pytest.raises(ndb.model.KindError):  # type: ignore[attr-defined]
        comment_rows.CommentRow(key=comment_rows.site_key("demo"))
    with pytest.raises(KeyError, match="nothing"):
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


def test_a_kind_with_an_unsupported_property_is_refused(store: connection.Store) -> None:
    with pytest.raises(TypeError, match=r"Odd\.where"):
        _message(Odd(key=ndb.Key(Odd, "one")))
