"""The command `import --map` moves pages, merges them in order of time, and keeps the mapping."""

from pathlib import Path

import click.testing
import flask
import pytest

from comments.domain import records
from comments.transfer.importing import import_journal
from tests.support import stored_state
from tests.support.importing import stored_imports
from tests.support.threads import sample_exports
from tests.support.threads.sample_exports import post


def thread(key: str, link: str) -> str:
    return f'<thread dsq:id="{key}"><link>{link}</link></thread>\n'


@pytest.fixture
def moved(tmp_path: Path) -> Path:
    """An export of a page under three addresses, whose comments interleave in time."""
    return sample_exports.saved(
        tmp_path / "export.xml",
        thread("1", "http://old.example/blog/roses"),
        thread("2", "http://localhost:4000/posts/roses/"),
        thread("3", "https://garden.example/posts/roses"),
        post("1", minute=1),
        post("2", minute=5, thread="2"),
        post("3", minute=9),
        post("4", "1", minute=8),
        post("5", minute=3, thread="3"),
        post("6", "1", minute=6),
        post("7", "2", minute=7, thread="2"),
    )


MAPPING = [
    "--map",
    "old.example/blog=garden.example/posts",
    "--map",
    "localhost:4000=garden.example",
]
ROSES = "garden.example/posts/roses"


def run(app: flask.Flask, file: Path, *options: str) -> click.testing.Result:
    arguments = ["import", str(file), "--site", "garden", *options]
    return app.test_cli_runner().invoke(args=arguments)


def test_pages_that_become_one_are_merged_in_order_of_time(
    app: flask.Flask, garden: records.Site, moved: Path
) -> None:
    shown = run(app, moved, *MAPPING)
    assert shown.exit_code == 0, shown.output
    assert "Added 7 comments in 1 thread; 0 existed already.\n" in shown.output
    assert "Mapped: old.example/blog=garden.example/posts (1 page, line 2)\n" in shown.output
    assert "Mapped: localhost:4000=garden.example (1 page, line 3)\n" in shown.output
    assert (
        f"Pages merged into one thread: 1\n  line 2: {ROSES}: http://old.example/blog/roses "
        "(line 2), http://localhost:4000/posts/roses/ (line 3), "
        "https://garden.example/posts/roses (line 4)\n" in shown.output
    )
    stored = stored_imports.comments("disqus", "1234567")
    assert {each.thread for each in stored} == {ROSES}
    assert [each.id for each in stored] == list("1645273")


def test_a_second_import_with_the_same_mapping_adds_nothing(
    app: flask.Flask, garden: records.Site, moved: Path
) -> None:
    run(app, moved, *MAPPING)
    before = sample_exports.rows()
    shown = run(app, moved, *MAPPING)
    assert "Added 0 comments in 1 thread; 7 existed already.\n" in shown.output
    assert sample_exports.rows() == before
    (found,) = import_journal.recent_imports("garden")
    assert found.mapping == tuple(MAPPING[1::2])


def test_a_mapped_page_has_the_address_of_its_origin(
    app: flask.Flask, garden: records.Site, moved: Path
) -> None:
    run(app, moved, *MAPPING)
    (found,) = stored_state.rows("Thread")
    assert found.properties["url"].string_value == "https://garden.example/posts/roses"


@pytest.mark.parametrize("mapping", [[], MAPPING[:2], [*MAPPING, "--map", "/posts=/articles"]])
def test_another_mapping_of_the_same_file_is_refused_with_advice(
    app: flask.Flask, garden: records.Site, moved: Path, mapping: list[str]
) -> None:
    run(app, moved, *MAPPING)
    before = sample_exports.rows()
    shown = run(app, moved, *mapping)
    assert shown.exit_code == 1
    assert f"is already stored in thread {ROSES}. If an earlier import used other" in shown.output
    assert sample_exports.rows() == before


def test_a_bad_mapping_is_refused_before_the_file_is_read(
    app: flask.Flask, garden: records.Site, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.xml"
    broken.write_text("<disqus>")
    shown = run(app, broken, "--map", "old.example")
    assert shown.exit_code == 1
    assert shown.output.startswith("Error: The mapping 'old.example' is not valid: it has no =.")


def test_a_mapping_that_matches_no_page_is_reported(
    app: flask.Flask, garden: records.Site, moved: Path
) -> None:
    shown = run(app, moved, "--map", "olde.example=garden.example", "--dry-run")
    assert (
        "Mapped: olde.example=garden.example (no page with comments has this address)\n"
        in shown.output
    )
