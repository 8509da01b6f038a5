"""The widget stays small: a page loads only a limited number of bytes before it shows a comment."""

import gzip

import pytest
from flask.testing import FlaskClient

from comments.web.service import service_pages
from tests.browser.conftest import built

# Limits in bytes as sent: for the scripts and styles that a reader needs, for the texts, and for
# each file that loads later.
READER = 20_000
STRINGS_LIMIT = 2_000
ENTRY = 4_500  # Contains a digest for every language, and two English texts
COUNTS = 1_000
LATER = {"writer": 18_000, "moderating": 5_500, "writing": 8_000}

STRINGS = sorted(name for name in service_pages._files() if name.startswith("strings-"))


def size(client: FlaskClient, name: str) -> int:
    answer = client.get(f"/widget/{name}", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(answer.data)
    return len(answer.data)


@pytest.mark.parametrize("strings", STRINGS)
def test_a_reader_loads_less_than_twenty_kilobytes(client: FlaskClient, strings: str) -> None:
    entry = size(client, "flatthread.js")
    assert entry < ENTRY
    assert entry + size(client, built("widget")) < READER
    assert size(client, strings) < STRINGS_LIMIT


def test_the_script_for_counts_is_below_a_kilobyte(client: FlaskClient) -> None:
    assert size(client, "count.js") < COUNTS


@pytest.mark.parametrize(("stem", "most"), LATER.items())
def test_a_file_that_loads_later_is_small(client: FlaskClient, stem: str, most: int) -> None:
    names = [name for name in service_pages._files() if name.startswith(f"{stem}-")]
    assert names
    assert all(size(client, name) < most for name in names)
