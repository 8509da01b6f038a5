"""The widget stays small: a page loads only a limited number of bytes before it shows a comment."""

import gzip
import re
from pathlib import Path

from flask.testing import FlaskClient

from comments.web.public import service_pages

WIDGET = Path(__file__).parents[2] / "comments" / "web" / "static" / "widget"
# Limits in bytes as sent: for all modules and the style sheet together, and for each module that
# loads when a reader begins to write.
LIMIT = 19_600
LATER = dict.fromkeys(
    (
        "changes.js",
        "notify.js",
        "problems.js",
        "proof.js",
        "provider.js",
        "signin.js",
        "strings-writing.js",
        "turnstile.js",
        "weaving.js",
        "writing.js",
        "writingcalls.js",
    ),
    2_000,
) | {"strings-errors.js": 5_000}  # loads only when a call fails


def test_the_widget_stays_below_twenty_kilobytes(client: FlaskClient) -> None:
    names = {file.name for file in (*WIDGET.glob("*.js"), WIDGET / "flatthread.css")}
    names |= set(service_pages._STRINGS)
    answers = {
        name: client.get(f"/widget/{name}", headers={"Accept-Encoding": "gzip"}) for name in names
    }
    assert len(answers) > 15
    assert {each.headers["Content-Encoding"] for each in answers.values()} == {"gzip"}
    assert all(gzip.decompress(each.data) for each in answers.values())
    sizes = {name: len(each.data) for name, each in answers.items()}
    assert all(sizes.pop(name) < most for name, most in LATER.items())
    assert sum(sizes.values()) < LIMIT


def test_readers_load_no_module_for_writing() -> None:
    for file in WIDGET.glob("*.js"):
        imports = re.findall(r'^import [^;]*"\./([^"]+)";$', file.read_text(), re.MULTILINE)
        assert file.name in LATER or not set(imports) & set(LATER), file.name
