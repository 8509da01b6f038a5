"""The widget stays small: a page loads a limited number of bytes before it shows a comment."""

import gzip

import pytest
from flask.testing import FlaskClient

from tests.browser.conftest import built

# Limits in transferred bytes: for all files that a reader needs, for the entry file, and for each
# file that loads later.
READER = 20_000
ENTRY = 3_500
COUNTS = 1_000
LATER = {"writer": 8_000, "writing-en": 6_500}


def size(client: FlaskClient, name: str) -> int:
    answer = client.get(f"/widget/{name}", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(answer.data)
    return len(answer.data)


def test_a_reader_loads_less_than_twenty_kilobytes(client: FlaskClient) -> None:
    entry = size(client, "flatthread.js")
    assert entry < ENTRY
    assert entry + size(client, built("widget")) + size(client, built("strings-en")) < READER


def test_the_script_for_counts_is_below_a_kilobyte(client: FlaskClient) -> None:
    assert size(client, "count.js") < COUNTS


@pytest.mark.parametrize(("stem", "most"), LATER.items())
def test_a_file_that_loads_later_is_small(client: FlaskClient, stem: str, most: int) -> None:
    assert size(client, built(stem)) < most
