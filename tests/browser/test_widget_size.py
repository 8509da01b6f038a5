"""The widget stays small: what a page loads before it shows a comment."""

import gzip
import re
from pathlib import Path

from flask.testing import FlaskClient

WIDGET = Path(__file__).parents[2] / "comments" / "web" / "static" / "widget"
# Bytes, modules and the style sheet as they are sent; what comes when somebody writes, each file.
LIMIT = 19_600
LATER = dict.fromkeys(
    (
        "changes.js",
        "notify.js",
        "proof.js",
        "provider.js",
        "signin.js",
        "turnstile.js",
        "weaving.js",
    ),
    2_000,
)


def test_the_widget_stays_below_twenty_kilobytes(client: FlaskClient) -> None:
    names = {file.name for file in (*WIDGET.glob("*.js"), WIDGET / "flatthread.css")}
    answers = {
        name: client.get(f"/widget/{name}", headers={"Accept-Encoding": "gzip"}) for name in names
    }
    assert len(answers) > 15
    assert {each.headers["Content-Encoding"] for each in answers.values()} == {"gzip"}
    assert all(gzip.decompress(each.data) for each in answers.values())
    sizes = {name: len(each.data) for name, each in answers.items()}
    assert all(sizes.pop(name) < most for name, most in LATER.items())
    assert sum(sizes.values()) < LIMIT


def test_what_is_for_writers_is_loaded_by_nothing_that_readers_load() -> None:
    for file in WIDGET.glob("*.js"):
        imports = re.findall(r'^import [^;]*"\./([^"]+)";$', file.read_text(), re.MULTILINE)
        assert not set(imports) & set(LATER), file.name
