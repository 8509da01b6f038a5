"""After an undo, a thread shows the title and the settings that people gave it."""

from pathlib import Path

import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.moderation.policy import policy_changes
from comments.sites import site_settings
from comments.store import reads
from comments.store.models import comment_rows
from tests.support.threads import sample_threads
from tests.support.threads import undone_imports as undone
from tests.support.threads.undone_imports import NOW, ROSES, TULIPS, comment

pytestmark = pytest.mark.usefixtures("small_batches")


TEST_PAGE = "http://localhost:8000"


def heading() -> tuple[str, str]:
    """Return the title and the page's address that the thread of the roses shows."""
    row = reads.get(comment_rows.thread_key(records.ThreadName("garden", ROSES)))
    return row.title, row.url


def send(client: FlaskClient, origin: str) -> None:
    """Post a comment about the roses from a page with a title of its own."""
    url = f"https://{ROSES}"
    response = client.post(
        "/api/v1/sites/garden/comments",
        query_string={"page": url},
        json={"name": "Ann", "body": "from a page", "title": "A page", "url": url},
        headers={"Origin": origin},
    )
    assert response.status_code == 201, response.text
    undone.deliver()


def test_a_test_page_names_no_thread_of_the_website(
    garden: records.Site, client: FlaskClient, tmp_path: Path
) -> None:
    site_settings.change("garden", origins=(*garden.origins, TEST_PAGE))
    path = undone.saved(tmp_path / "export", [comment("1")], roses={"title": "Roses"})
    found = undone.brought(path)
    assert heading() == ("Roses", f"https://{ROSES}")
    send(client, TEST_PAGE)
    assert heading() == ("Roses", f"https://{ROSES}")
    undone.undo(found)
    assert heading() == ("", "")
    undone.brought(path)
    assert heading() == ("Roses", f"https://{ROSES}")


def test_a_real_page_names_the_thread_while_no_import_does(
    garden: records.Site, client: FlaskClient, tmp_path: Path
) -> None:
    path = undone.saved(tmp_path / "export", [comment("1")], roses={"title": "Roses"})
    found = undone.brought(path)
    send(client, garden.origins[0])
    assert heading()[0] == "Roses"
    undone.undo(found)
    assert heading() == ("A page", f"https://{ROSES}")
    undone.brought(path)
    assert heading()[0] == "A page"


def test_a_thread_with_settings_of_moderators_stays(garden: records.Site, path: Path) -> None:
    found = undone.brought(path)
    policy_changes.set_thread(
        records.ThreadName("garden", TULIPS),
        sample_threads.ADA,
        now=NOW,
        state=records.ThreadState.CLOSED,
    )
    undone.undo(found)
    assert [name.id for name in undone.threads()] == [TULIPS]
    undone.assert_sound()
    undone.post(garden, "in a new thread")
    undone.deliver()
    undone.assert_sound()


def test_a_thread_with_the_settings_of_its_export_is_deleted(
    garden: records.Site, tmp_path: Path
) -> None:
    kept = records.MovedThread(policy=records.Policy.LINKS, own=("title",))
    pages = {"tulips": {"kept": kept, "id": TULIPS, "closed": True}}
    pages["lilies"] = {"kept": kept, "id": "lilies"}
    export = [comment("1", page="tulips"), comment("2", page="lilies")]
    found = undone.brought(undone.saved(tmp_path / "export", export, **pages))
    rows = [reads.get(comment_rows.thread_key(name)) for name in undone.threads()]
    assert {(row.policy, *row.own) for row in rows} == {("links", "title")}
    policy_changes.set_thread(
        records.ThreadName("garden", "lilies"), sample_threads.ADA, now=NOW, inherits=True
    )
    undone.undo(found)
    assert [name.id for name in undone.threads()] == ["lilies"]
