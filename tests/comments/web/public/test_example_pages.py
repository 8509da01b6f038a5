"""Test the pages of examples: the code that they show is the code that runs."""

import dataclasses
import html.parser

import flask
import pytest
from flask.testing import FlaskClient

from comments.web.http import context
from comments.web.service import example_pages

NAMES = [name for names in example_pages.GROUPS.values() for name in names]
FILES = example_pages._files()


class Codes(html.parser.HTMLParser):
    """The texts of a page's code blocks, and the addresses of its frames."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.frames: list[str | None] = []
        self._is_code = False
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "iframe":
            self.frames.append(dict(attrs)["src"])
        if tag == "pre":
            self._is_code = True
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._is_code = self._is_code and tag != "pre"

    def handle_data(self, data: str) -> None:
        if self._is_code:
            self.texts[-1] += data


def _shown(text: str) -> str:
    return text.replace("https://comments.example", "http://localhost")


def test_the_page_shows_the_code_of_each_file_and_frames_each_example(client: FlaskClient) -> None:
    page = Codes(client.get("/examples").text)
    assert sorted(page.texts) == sorted(map(_shown, FILES.values()))
    assert page.frames == [f"examples/{name}" for name in NAMES]


def test_every_file_belongs_to_an_example() -> None:
    assert {name.partition(".")[0] for name in FILES} == set(NAMES)


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_code_that_runs_is_the_code_that_is_shown(client: FlaskClient, name: str) -> None:
    stem, _, kind = name.partition(".")
    page = client.get(f"/examples/{stem}").text
    runs = page if kind == "html" else client.get(f"/examples/{name}").text
    assert FILES[name].replace("https://comments.example", "..").strip() in runs
    assert kind == "html" or f'"{name}"' in page


def test_the_code_names_the_services_own_address(app: flask.Flask, client: FlaskClient) -> None:
    found = context.of(app)
    settings = dataclasses.replace(found.settings, public_url="https://talk.example.org")
    context.keep(app, context.Context(settings, found.store))
    page = client.get("/examples", headers={"Host": "talk.example.org"}).text
    assert "https://talk.example.org/widget/flatthread.js" in page
    assert "comments.example" not in page


@pytest.mark.parametrize("name", ["nothing", "site.html", "site.css", "..", "site.js", "events.py"])
def test_there_are_no_other_files(client: FlaskClient, name: str) -> None:
    assert client.get(f"/examples/{name}").status_code == 404


def test_only_the_page_of_all_examples_may_frame_an_example(client: FlaskClient) -> None:
    def policy(path: str) -> str:
        return client.get(path).headers["Content-Security-Policy"]

    assert "frame-ancestors 'self'" in policy("/examples/events")
    assert "frame-ancestors 'none'" in policy("/examples")
    assert "frame-src 'self'" in policy("/examples")
