"""The widget stays small: what a page loads before it shows a comment."""

import gzip
from pathlib import Path

from flask.testing import FlaskClient

STATIC = Path(__file__).parents[2] / "comments" / "web" / "static"
# Bytes, all modules and the style sheet as they are sent.
LIMIT = 20_000
# Of the pages of owners and moderators, which no reader loads.
STAFF = {"desk.js", "ticket.js"}


def test_the_widget_stays_below_twenty_kilobytes(client: FlaskClient) -> None:
    modules = [file for file in STATIC.glob("*.js") if file.name not in STAFF]
    files = [*modules, STATIC / "flatthread.css"]
    answers = [
        client.get(f"/widget/{file.name}", headers={"Accept-Encoding": "gzip"}) for file in files
    ]
    assert len(answers) > 15
    assert {each.headers["Content-Encoding"] for each in answers} == {"gzip"}
    assert all(gzip.decompress(each.data) for each in answers)
    assert sum(len(each.data) for each in answers) < LIMIT
