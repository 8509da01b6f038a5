"""The commands of a thread change its categories and build its pages again."""

from flask.testing import FlaskClient

from comments.domain import records
from comments.store import connection, reads
from comments.store.models import comment_rows
from tests.comments.cli.conftest import Runner
from tests.support.threads import raw_changes, sample_threads


def test_the_categories_of_a_thread_are_changed(
    run: Runner, store: connection.Store, site: records.Site
) -> None:
    sample_threads.grow(site, sample_threads.TREE)
    name = sample_threads.name_of(site)
    changed = run("thread", "set", "demo", "page", "--category", "Sport", "--category", "news")
    assert changed.exit_code == 0
    assert changed.output.splitlines() == [
        "Moved 8 comments.",
        "title\t\tthe oldest approved comment",
        "url\t\tthe oldest approved comment",
        "categories\tnews, sport\ta moderator",
    ]
    assert reads.get(comment_rows.thread_key(name)).categories == ["news", "sport"]
    removed = run("thread", "set", "demo", "page", "--no-category").output
    assert removed.startswith("Moved 8 comments.\n")
    assert reads.get(comment_rows.thread_key(name)).categories == []
    titled = run("thread", "set", "demo", "page", "--title", "Own", "--inherit", "categories")
    assert titled.output.startswith("Moved 0 comments.\ntitle\tOwn\ta moderator\n")
    assert reads.get(comment_rows.thread_key(name)).title == "Own"


def test_a_rebuild_brings_a_raw_change_to_readers(
    run: Runner, site: records.Site, client: FlaskClient, store: connection.Store
) -> None:
    row = sample_threads.post(site, "1")
    sample_threads.post(site, "2", thread="other")
    run("compact")
    raw_changes.comment(row.id, html="<p>other</p>")
    page = "/api/v1/sites/demo/comments?thread=page"
    assert "other" not in client.get(page).text
    done = run("thread", "rebuild", "demo", "page").output
    assert done.startswith("Rebuilt 1 thread; 1 still to be cleaned up.\n")
    assert "<p>other</p>" in client.get(page).text
    assert run("thread", "rebuild", "demo").output.startswith("Rebuilt 2 threads; ")
    for refused in (run("thread", "rebuild", "demo", "never"), run("thread", "rebuild", "never")):
        assert (refused.exit_code, refused.output.count("\n")) == (1, 1)
