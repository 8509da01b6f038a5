"""NDB's metadata and statistics functions."""

from collections.abc import Iterator

import pytest
from google.cloud import ndb
from google.cloud.ndb import metadata as ndb_metadata
from google.cloud.ndb import stats

from datastore_emulator import inprocess, testing
from emulator.tests.support import service_calls


@pytest.fixture(params=["", "spaced"])
def context(engine: inprocess.Engine, request: pytest.FixtureRequest) -> Iterator[None]:
    client = testing.ndb_client(inprocess.Channel(engine))
    with client.context(namespace=request.param):
        yield


def test_ndb_reads_metadata(context: None, near: service_calls.Service) -> None:
    space = ndb.get_context().get_namespace()
    for kind in ("Any", "Most", "Some"):
        near.put(near.key(kind, 1, namespace=space), foo=1, bar="x", baz=[1, None])
    near.put(near.key("Else", 1, namespace="other"))
    spaces = sorted({"other", space})
    assert ndb_metadata.get_namespaces() == spaces
    assert ndb_metadata.get_namespaces(start="p") == [each for each in spaces if each >= "p"]
    assert ndb_metadata.get_namespaces(end="p") == [each for each in spaces if each < "p"]
    assert ndb_metadata.get_namespaces(start="o", end="p") == ["other"]
    assert ndb_metadata.get_kinds() == ["Any", "Most", "Some"]
    assert ndb_metadata.get_kinds(start="B") == ["Most", "Some"]
    assert ndb_metadata.get_kinds(end="M") == ["Any"]
    assert ndb_metadata.get_kinds(start="B", end="Some") == ["Most"]
    assert ndb_metadata.get_properties_of_kind("Any") == ["bar", "baz", "foo"]
    assert ndb_metadata.get_properties_of_kind("Any", start="baz") == ["baz", "foo"]
    assert ndb_metadata.get_properties_of_kind("Any", end="baz") == ["bar"]
    assert ndb_metadata.get_properties_of_kind("Any", start="bar", end="baz") == ["bar"]
    assert ndb_metadata.get_properties_of_kind("None") == []
    types = {"bar": ["STRING"], "baz": ["NULL", "INT64"], "foo": ["INT64"]}
    assert ndb_metadata.get_representations_of_kind("Any") == types
    assert ndb_metadata.get_representations_of_kind("Any", start="baz", end="foo") == {
        "baz": types["baz"]
    }


def test_ndb_finds_no_statistics(context: None) -> None:
    assert stats.KindStat.query().fetch() == []
    assert stats.GlobalStat.query().order(-stats.GlobalStat.timestamp).fetch() == []
