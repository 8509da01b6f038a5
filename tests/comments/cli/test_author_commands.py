"""Operators name an author by the id that the tables of statistics show."""

import json

import flask
import pytest

from tests.support.threads import sample_exports

pytestmark = pytest.mark.usefixtures("site")


def test_the_author_of_imported_comments_is_exported_and_erased_by_id(app: flask.Flask) -> None:
    run = app.test_cli_runner().invoke
    export = str(sample_exports.IMPORTS / "disqus.xml")
    assert run(args=["import", "disqus", export, "--site", "demo"]).exit_code == 0
    listed = run(args=["stats", "commenters", "demo", "garden.example/roses", "--format", "json"])
    author = json.loads(listed.stdout)[0]["author"]
    assert author.startswith("i:")

    said = run(args=["author", "export", author])
    assert said.exit_code == 0, said.output
    (comment,) = json.loads(said.stdout)["comments"]
    assert comment["thread"] == "garden.example/roses"

    erased = run(args=["author", "erase", author, "--yes"])
    assert erased.output == "Erased 1 comment and 0 votes.\n"
    assert json.loads(run(args=["author", "export", author]).stdout)["comments"] == []
