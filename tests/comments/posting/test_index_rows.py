"""A post stores an index row only in an index that a query uses."""

import contextlib
import sqlite3

import pytest
from flask.testing import FlaskClient

from datastore_emulator import inprocess
from datastore_emulator.encoding import indexes
from tests.support.people.proof_solver import post

pytestmark = pytest.mark.usefixtures("one_day")

COMPOSITES_AND_KEYS = 14  # Rows of a reply; with the indexes of all properties, there are 53.


def rows_of_last_commit(engine: inprocess.Engine) -> list[indexes.Index]:
    with contextlib.closing(sqlite3.connect(engine.storage.path)) as connection:
        found = connection.execute(
            "SELECT code FROM index_entries JOIN indexes ON id = index_id "
            "WHERE version = (SELECT version FROM engine_state)"
        ).fetchall()
    return [indexes.decode(code) for (code,) in found]


@pytest.mark.usefixtures("site")
def test_a_reply_stores_no_row_of_an_index_that_no_query_uses(
    engine: inprocess.Engine, client: FlaskClient
) -> None:
    parent = post(client, "Hello").get_json()["comment"]["id"]
    for number in range(3):
        assert post(client, f"A reply {number}", parent=parent).status_code == 201
    found = rows_of_last_commit(engine)
    assert 0 < len(found) <= COMPOSITES_AND_KEYS
    assert [index for index in found if index.is_builtin and index.properties] == []
