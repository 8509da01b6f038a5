"""The features that NDB's models require: meanings, dotted names, cursors, and NDB's own merges."""

# ruff: noqa: DTZ001 - NDB takes naive UTC

import datetime as dt
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import google.api_core.exceptions
import pytest
from google.cloud import datastore, ndb

from datastore_emulator import inprocess, testing


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[inprocess.Engine]:
    index_yaml = tmp_path / "index.yaml"
    index_yaml.write_text("""
indexes:
- kind: Kind
  properties: [{name: n}, {name: word}]
- kind: Kind
  properties: [{name: word}, {name: n, direction: desc}]
""")
    with inprocess.open_engine(None, indexes=index_yaml) as opened:
        yield opened


@pytest.fixture(autouse=True)
def context(engine: inprocess.Engine) -> Iterator[Any]:
    with (
        mock.patch.dict(ndb.Model._kind_map),  # Tests must not share models
        testing.ndb_client(inprocess.Channel(engine)).context(cache_policy=False) as entered,
    ):
        yield entered


@pytest.fixture
def raw(engine: inprocess.Engine) -> datastore.Client:
    """A client that returns entities exactly as the engine stores them."""
    return testing.datastore_client(inprocess.Channel(engine))


class Inner(ndb.Model):
    one = ndb.StringProperty()
    two = ndb.StringProperty()


def test_values_distinguished_by_a_meaning_are_returned(raw: datastore.Client) -> None:
    class Kind(ndb.Model):
        packed = ndb.JsonProperty(compressed=True)
        blob = ndb.BlobProperty(compressed=True)
        inner = ndb.LocalStructuredProperty(Inner, repeated=True, compressed=True)
        pickled = ndb.PickleProperty()
        user = ndb.UserProperty()
        place = ndb.GeoPtProperty()
        words = ndb.StringProperty(repeated=True)
        text = ndb.TextProperty()

    made = Kind(
        packed={"n": list(range(500))}, blob=b"abc" * 1000, inner=[Inner(one="a"), Inner(two="b")],
        pickled={1, 2}, user=ndb.User("somebody@example.com", "gmail.com"), place=ndb.GeoPt(1, 2),
        words=["", ""], text="t" * 3000,
    )  # fmt: skip
    found = made.put().get()
    assert found == made
    stored = raw.get(found.key._key)
    assert stored._meanings["blob"][0] == 22
    assert "text" in stored.exclude_from_indexes


def test_values_of_the_legacy_service_are_read_by_their_meaning(raw: datastore.Client) -> None:
    class Kind(ndb.Model):
        blob = ndb.BlobProperty()
        inner = ndb.StructuredProperty(Inner, repeated=True)

    packed = zlib.compress(b"abc" * 1000)
    entity = datastore.Entity(raw.key("Kind", 1), exclude_from_indexes=["blob"])
    entity.update({"blob": packed, "inner.one": ["hi", "hello"], "inner.two": ["mom", "dad"]})
    entity._meanings["blob"] = (22, packed)
    raw.put(entity)
    found = Kind.get_by_id(1)
    assert found.blob == b"abc" * 1000
    assert [(each.one, each.two) for each in found.inner] == [("hi", "mom"), ("hello", "dad")]
    assert Kind.query(Kind.inner.one == "hello").get(keys_only=True) == found.key


@pytest.mark.parametrize("legacy", [False, True])
def test_structured_properties_are_found_by_their_parts(context: Any, legacy: bool) -> None:
    class Kind(ndb.Model):
        inner = ndb.StructuredProperty(Inner)
        many = ndb.StructuredProperty(Inner, repeated=True)

    with context.new(legacy_data=legacy).use():
        one, other = Inner(one="a", two="b"), Inner(one="c", two="d")
        key = Kind(inner=one, many=[one, other]).put()
        Kind(inner=other, many=[Inner(one="a", two="d"), Inner(one="c", two="b")]).put()
        assert Kind.query(Kind.inner.one == "a", Kind.inner.two == "b").fetch(keys_only=True) == [
            key
        ]
        assert len(Kind.query(Kind.many.one == "a").fetch()) == 2
        assert [each.key for each in Kind.query(Kind.many == one).fetch()] == [key]


class Kind(ndb.Model):
    n = ndb.IntegerProperty()
    word = ndb.StringProperty(repeated=True)
    when = ndb.DateTimeProperty()


def numbers(query: Any) -> list[int]:
    return [each.n for each in query]


def test_every_result_has_cursors_around_it() -> None:
    ndb.put_multi([Kind(id=n, n=n) for n in range(1, 6)])
    query = Kind.query().order(Kind.n)
    results = query.iter(produce_cursors=True)
    for number, each in enumerate(results, 1):
        after = results.cursor_after()
        assert numbers(query.fetch(start_cursor=after)) == list(range(number + 1, 6))
        assert numbers(query.fetch(end_cursor=after)) == list(range(1, number + 1))
        if number > 1:
            before = results.cursor_before()
            assert numbers(query.fetch(start_cursor=before)) == list(range(number, 6))
        assert each.n == number
    page, cursor, more = query.fetch_page(3)
    assert (numbers(page), more) == ([1, 2, 3], True)
    page, _, more = query.fetch_page(3, start_cursor=cursor)
    assert (numbers(page), more) == ([4, 5], False)


def test_results_that_ndb_merges_are_in_the_servers_order() -> None:
    """NDB runs one query for each value and merges the results by order and key.

    NDB and the engine must sort in the same way.
    """
    ndb.put_multi([
        Kind(id=name, n=n, word=["x", "y"][: n % 3])
        for n, name in enumerate([1, 10, 2, "10", "B", "a", "é"])
    ])  # fmt: skip
    values = [0, 3, 5, 6, 4, 99]
    for order in ((Kind.n,), (-Kind.n,)):
        merged = Kind.query(Kind.n.IN(values)).order(*order).fetch()
        served = Kind.query(Kind.n.IN(values, server_op=True)).order(*order).fetch()
        assert merged == served
        assert len(merged) == 5
    either = Kind.query(ndb.OR(Kind.word == "x", Kind.n == 3)).fetch()
    assert len(either) == 5
    assert {each.key.id() for each in either} == {2, 10, "10", "B", "a"}
    assert numbers(Kind.query(Kind.n != 3).order(Kind.n)) == [0, 1, 2, 4, 5, 6]
    assert sorted(numbers(Kind.query(Kind.n.NOT_IN([0, 3, 6])))) == [1, 2, 4, 5]


def test_projections_and_distinct_results_have_ndb_types() -> None:
    when = dt.datetime(2020, 5, 17, 1, 2, 3, 4)
    ndb.put_multi([Kind(id=n, n=n % 2, word=["b", "a"], when=when) for n in range(1, 4)])
    assert Kind.query().get(projection=[Kind.when]).when == when
    both = Kind.query(projection=[Kind.n, Kind.word]).order(Kind.n, Kind.word).fetch()
    assert [(each.n, each.word) for each in both] == [
        (0, ["a"]), (0, ["b"]), (1, ["a"]), (1, ["a"]), (1, ["b"]), (1, ["b"]),
    ]  # fmt: skip
    distinct = Kind.query(projection=[Kind.n, Kind.word], distinct=True).fetch()
    assert [(each.n, each.word) for each in distinct] == [
        (0, ["a"]), (0, ["b"]), (1, ["a"]), (1, ["b"]),
    ]  # fmt: skip
    assert numbers(Kind.query(distinct_on=["n"]).order(Kind.n)) == [0, 1]


def test_ordered_merges_can_project_the_key_with_properties() -> None:
    """For an ordered merge, NDB adds the order's properties to each query's projection."""
    ndb.put_multi([
        Kind(id=name, n=n, word=["x", "y"][: n % 3]) for n, name in enumerate([1, 10, 2, "10", "B"])
    ])  # fmt: skip
    either = Kind.query(ndb.OR(Kind.word == "x", Kind.word == "y"))
    expected = ["B", 2, 10]
    keys = either.order(-Kind.n).fetch(keys_only=True)
    assert [key.id() for key in keys] == expected
    assert either.order(-Kind.n).count() == 3
    chosen = Kind.query(Kind.word.IN(["x", "y"])).order(-Kind.n, Kind.key)
    assert [each.key.id() for each in chosen.fetch(projection=[Kind.n])] == expected
    assert [each.n for each in chosen.fetch(projection=[Kind.n], limit=2)] == [4, 2]
    assert [key.id() for key in chosen.fetch(keys_only=True, offset=1)] == expected[1:]


def test_one_entity_twice_in_a_batch_is_refused() -> None:
    made = Kind(id=1, n=1)
    for change in (
        lambda: ndb.put_multi([made, made]),
        lambda: ndb.delete_multi([made.key, made.key]),
    ):
        with pytest.raises(google.api_core.exceptions.InvalidArgument, match="multiple mutations"):
            change()
    assert made.key.get() is None


def test_a_transaction_reads_its_snapshot_and_rolls_back_on_failure() -> None:
    key = Kind(id=1, n=42).put()

    def delete(*, fails: bool) -> None:
        key.delete()
        assert key.get().n == 42
        if fails:
            raise LookupError

    with pytest.raises(LookupError):
        ndb.transaction(lambda: delete(fails=True))
    assert key.get().n == 42
    ndb.transaction(lambda: delete(fails=False))
    assert key.get() is None
    assert ndb.transaction(lambda: Kind.get_or_insert("x", n=1).n) == 1
    assert Kind.get_or_insert("x", n=2).n == 1
