"""The threads, comments and feed of a category over HTTP contain what readers may see."""

from datetime import timedelta

import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.domain.records import Verb
from comments.moderation import decisions
from comments.sites import site_settings
from comments.transfer.moves import move_plan, thread_moves
from tests.support.people.api_requests import answer, refused
from tests.support.threads import sample_threads

NOW = sample_threads.START
SITE = "/api/v1/sites/demo"
LISTS = (f"{SITE}/threads", f"{SITE}/comments", "/feeds/demo")


@pytest.fixture
def posted(site: records.Site, store: object) -> dict[str, records.Comment]:
    """Post one comment in each of three threads, and a held one in the first thread."""
    site = site_settings.change("demo", filed=("news", "sport", "sport/football"))
    rows = {
        text: sample_threads.post(
            site, text, thread=text.rstrip("'"), categories=(name,),
            now=NOW + timedelta(minutes=number),
        )
        for number, (text, name) in enumerate(
            [("cup", "sport/football"), ("race", "sport"), ("vote", "news"),
             ("cup'", "sport/football")]
        )
    }  # fmt: skip
    decisions.decide("demo", rows["cup'"].id, Verb.HOLD, sample_threads.ADA, now=NOW)
    return rows


def threads(client: FlaskClient, term: str) -> list[str]:
    found = answer(client.get(LISTS[0], query_string={"category": term}))["threads"]
    return [row["thread"] for row in found]


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("sport", ["race", "cup"]), ("Sport/Football", ["cup"]), ("*/football", ["cup"]),
        ("*/sport", ["race", "cup"]), ("football", []),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("posted")
def test_each_list_contains_the_approved_comments_of_a_category(
    client: FlaskClient, term: str, expected: list[str]
) -> None:
    query = {"category": term}
    assert threads(client, term) == expected
    found = answer(client.get(LISTS[1], query_string=query))["comments"]
    assert [row["comment"]["html"] for row in found] == [f"<p>{text}</p>\n" for text in expected]
    assert [row["thread"] for row in found] == expected
    feed = client.get(LISTS[2], query_string=query).text
    assert feed.count("<entry>") == len(expected)
    assert all(f"&lt;p&gt;{text}&lt;/p&gt;" in feed for text in expected)


@pytest.mark.usefixtures("posted")
def test_pages_of_a_category_follow_each_other(client: FlaskClient) -> None:
    for path, name in ((LISTS[0], "threads"), (LISTS[1], "comments")):
        first = answer(client.get(f"{path}?category=sport&limit=1"))
        last = answer(client.get(f"{path}?category=sport&limit=1&cursor={first['cursor']}"))
        assert [row["thread"] for row in first[name] + last[name]] == ["race", "cup"]
        assert last["cursor"] is None
        other = client.get(f"{path}?category=news&limit=1&cursor={first['cursor']}")
        assert other.status_code == 400


@pytest.mark.usefixtures("posted")
def test_a_moved_thread_has_its_canonical_address_in_each_list(client: FlaskClient) -> None:
    site = site_settings.get("demo")
    plan = move_plan.of_list(site, [("cup", "final")])
    begun = thread_moves.begin(site, plan, "a test", sample_threads.ADA, now=NOW)
    assert thread_moves.run_to_end(begun).moved == 1
    assert threads(client, "sport") == ["race", "final"]
    found = answer(client.get(f"{LISTS[1]}?category=sport/football"))["comments"]
    assert [row["thread"] for row in found] == ["final"]
    assert "thread=final" in found[0]["link"]
    assert "thread=final" in client.get(f"{LISTS[2]}?category=sport/football").text


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.usefixtures("posted")
def test_an_unchanged_list_is_answered_with_304(client: FlaskClient, path: str) -> None:
    first = client.get(f"{path}?category=sport")
    again = client.get(f"{path}?category=sport", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("term", ["*/", "*/a/b", "<b>", "a/b/c/d", "-"])
@pytest.mark.usefixtures("posted")
def test_an_invalid_category_is_refused(client: FlaskClient, path: str, term: str) -> None:
    said = client.get(path, query_string={"category": term})
    refused(said, 400, "category")


@pytest.mark.usefixtures("posted")
def test_a_category_and_a_thread_cannot_be_combined(client: FlaskClient) -> None:
    said = client.get(f"{LISTS[1]}?category=sport&thread=cup")
    refused(said, 400, "thread")
    refused(client.get(LISTS[0]), 400, "category")
