"""A moderator's token reads who writes where, as JSON and CSV, page by page; nobody else may."""

import re
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments.accounts import accounts
from comments.domain import records
from comments.events import dispatcher
from comments.notifications import reader_follows
from comments.sites import site_settings
from comments.store import connection
from comments.upkeep import wiring
from comments.web.api.site_statistics import statistics_calls
from datastore_emulator import inprocess, testing
from tests.comments.web.api import test_openapi
from tests.support.histories import counter_oracle
from tests.support.people import account_holders, moderators
from tests.support.people.account_holders import moderator
from tests.support.threads import sample_threads, sample_votes

pytestmark = pytest.mark.usefixtures("store", "site", "quick_passwords")

SPORT = '{"fans": {"any": [{"category": "sport"}]}}'
STATISTICS = "/api/v1/sites/demo/moderation/statistics"
CALLS = {
    "categories": ("CategoryReport", ""),
    "days": ("DayReport", ""),
    "category-commenters": ("CommenterReport", "category=sport"),
    "thread-commenters": ("CommenterReport", "thread=a"),
    "thread-followers": ("FollowerReport", "thread=a"),
    "author-categories": ("AuthorCategoryReport", "author=g:ann"),
    "author-threads": ("AuthorThreadReport", "author=g:ann"),
    "audience-commenters": ("MemberReport", f"audiences={quote(SPORT)}"),
}


@pytest.fixture(autouse=True)
def _filled(store: connection.Store, site: records.Site) -> None:
    site_settings.change(site.id, origins=[moderators.ORIGIN])
    followed = records.ThreadName(site.id, "a")
    for author in ("g:eve", "g:finn"):
        reader_follows.follow(followed, author, now=sample_threads.START)
        reader_follows.show_name(followed, author, f"=user-{author[2:]}")
    filed = sample_threads.filing(site, "sport/football", "sport/rugby", "news")
    for number, (who, thread, category) in enumerate(
        [
            ("ann", "a", "sport/football"), ("bob", "a", "sport/football"), ("ann", "b", "news"),
            ("cid", "c", "sport/rugby"), ("ann", "c", "sport/rugby"),
        ]
    ):  # fmt: skip
        sample_threads.post(
            filed, f"{number}", thread=thread, author=sample_threads.author(who), title="=1+1",
            categories=(category,), now=sample_threads.START + timedelta(hours=6 * number),
        )  # fmt: skip
    dispatcher.deliver(counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS)


@pytest.fixture
def ann() -> accounts.Account:
    return account_holders.account("ann", moderator())


@pytest.fixture
def token(ann: accounts.Account) -> str:
    return moderators.token(ann)


def ask(client: FlaskClient, token: str, call: str, **headers: str) -> TestResponse:
    return client.get(f"{STATISTICS}/{call}", headers=moderators.bearer(token, **headers))


def answer(client: FlaskClient, token: str, call: str) -> Any:
    found = ask(client, token, call)
    assert found.status_code == 200, found.text
    return found.get_json()


def test_the_numbers_of_categories_and_of_a_subtree(client: FlaskClient, token: str) -> None:
    found = answer(client, token, "categories")
    short = [
        (each["category"], each["comments"], each["commenters"]) for each in found["categories"]
    ]
    assert short == [
        ("news", 1, 1), ("sport", 4, 3), ("sport/football", 2, 2), ("sport/rugby", 2, 2)
    ]  # fmt: skip
    assert found["cursor"] is None
    under = answer(client, token, "categories?under=Sport%20/%20Football")["categories"]
    assert under == [
        {
            "category": "sport/football", "comments": 2, "commenters": 2, "pending": 0, "spam": 0,
            "rejected": 0, "retracted": 0,
        }
    ]  # fmt: skip


def test_the_numbers_of_days_with_votes(
    client: FlaskClient, token: str, site: records.Site
) -> None:
    later = sample_threads.START + timedelta(days=1)  # The last comment is of this day too.
    voted = sample_threads.post(site, "voted", author=sample_threads.author("ann"), now=later)
    for voter, value in (("bob", 1), ("cid", 1), ("eve", -1)):
        sample_votes.vote(voted, voter, value)
    sample_votes.count_all()
    zeros = dict.fromkeys(("pending", "spam", "rejected", "retracted"), 0)
    first = {"day": "2026-01-02", "comments": 4, "commenters": 3, "up": 0, "down": 0}
    second = {"day": "2026-01-03", "comments": 2, "commenters": 1, "up": 2, "down": 1}
    found = answer(client, token, "days")
    assert found == {"days": [first | zeros, second | zeros], "cursor": None}
    assert answer(client, token, "days?since=2026-01-03")["days"] == [second | zeros]
    assert answer(client, token, "days?until=2026-01-01")["days"] == []
    assert ask(client, token, "days?since=2026-01-03&until=2026-01-02").status_code == 400


def test_the_authors_of_a_category_and_of_a_thread(client: FlaskClient, token: str) -> None:
    of_category = answer(client, token, "category-commenters?category=Sport")
    assert of_category == {
        "commenters": [
            {"author": "g:ann", "comments": 2},
            {"author": "g:bob", "comments": 1},
            {"author": "g:cid", "comments": 1},
        ],
        "cursor": None,
    }
    of_thread = answer(client, token, "thread-commenters?thread=a")
    assert [each["author"] for each in of_thread["commenters"]] == ["g:ann", "g:bob"]
    assert answer(client, token, "thread-commenters?thread=nothing")["commenters"] == []


def test_the_categories_and_threads_of_an_author(client: FlaskClient, token: str) -> None:
    found = answer(client, token, "author-categories?author=g:ann")["categories"]
    assert {each["category"]: each["comments"] for each in found} == {
        "news": 1, "sport": 2, "sport/football": 1, "sport/rugby": 1
    }  # fmt: skip
    threads = answer(client, token, "author-threads?author=g:ann")["threads"]
    assert threads == [{"thread": each, "title": "=1+1", "comments": 1} for each in "abc"]
    assert answer(client, token, "author-threads?author=g:nobody")["threads"] == []


@pytest.mark.parametrize("call", CALLS)
def test_pages_of_both_formats_contain_each_line_once_and_lead_to_the_next(
    client: FlaskClient, token: str, call: str
) -> None:
    query = CALLS[call][1]
    (lines, _) = answer(client, token, f"{call}?{query}").values()
    table = ask(client, token, f"{call}?{query}&format=csv").text.splitlines()
    assert len(table) == len(lines) + 1 > 2
    found, rows = [], [table[0]]
    path, at = f"{call}?{query}&limit=1", ""
    while path:
        page = ask(client, token, path)
        (some, cursor) = page.get_json().values()
        found += some
        rows += ask(client, token, f"{path}&format=csv").text.splitlines()[1:]
        link = page.headers.get("Link", "")
        assert bool(link) == (cursor is not None)
        match = re.fullmatch(rf'<{STATISTICS}/([^>]*)>; rel="next"', link)
        path, at = (match[1] if match else ""), path
        assert path != at
        assert cursor is None or path.endswith(f"cursor={cursor}")
    assert (found, rows) == (lines, table)


TWO = (
    '{"a and c": {"all": [{"thread": "a"}, {"thread": "c"}]},'
    ' "=not news": {"any": [{"site": true}], "but": [{"category": "news"}]}}'
)


def test_audiences_are_counted_and_priced(client: FlaskClient, token: str) -> None:
    asked = f"?audiences={quote(TWO)}"
    found = answer(client, token, f"audiences{asked}")
    assert found == {
        "audiences": [
            {"audience": "a and c", "commenters": 1},
            {"audience": "=not news", "commenters": 2},
        ]
    }
    test_openapi.assert_described(found, "AudienceReport")
    table = ask(client, token, f"audiences{asked}", Accept="text/csv").text
    assert table == "audience,commenters\na and c,1\n'=not news,2\n"
    cost = answer(client, token, f"audience-cost{asked}")
    assert cost == {"rows": 2 + 2 + 3 + 1, "reads": (1 + 2) + (1 + 2) + (1 + 1) + (1 + 1)}
    test_openapi.assert_described(cost, "ScanCost")


def test_the_cost_of_audiences_is_the_price_of_their_scan(
    client: FlaskClient, token: str, engine: inprocess.Engine
) -> None:
    """In addition, each call reads the moderator's session."""
    asked = f"?audiences={quote(TWO)}"
    reads = answer(client, token, f"audience-cost{asked}")["reads"]
    with testing.meter(engine) as cost:
        answer(client, token, f"audiences{asked}")
    assert (cost.reads, cost.writes) == (reads + 2, 0)


@pytest.mark.parametrize("call", ["audiences", "audience-cost", "audience-commenters"])
def test_only_moderators_may_ask_about_audiences(
    client: FlaskClient, token: str, call: str
) -> None:
    assert client.get(f"{STATISTICS}/{call}?audiences={quote(SPORT)}").status_code == 401


def test_an_audience_that_is_too_large_for_a_request_is_refused(
    client: FlaskClient, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics_calls, "_MOST_SCANNED", 2)
    for call in ("audiences", "audience-commenters"):
        found = ask(client, token, f"{call}?audiences={quote(SPORT)}")
        assert (found.status_code, found.get_json()["code"]) == (400, "audience-too-large")
    assert answer(client, token, f"audience-cost?audiences={quote(SPORT)}")["rows"] == 3


def test_a_table_contains_no_formulas(client: FlaskClient, token: str) -> None:
    found = ask(client, token, "author-threads?author=g:bob", Accept="text/csv")
    assert found.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert found.text == "thread,title,comments\na,'=1+1,1\n"


@pytest.mark.parametrize(
    ("accept", "form", "expected"),
    [
        ("text/csv", "", "text/csv"), ("text/csv", "json", "application/json"),
        ("application/json", "csv", "text/csv"), ("*/*", "", "application/json"),
        ("text/csv;q=0.5, application/json", "", "application/json"),
    ],
)  # fmt: skip
def test_the_parameter_takes_precedence_over_the_header(
    client: FlaskClient, token: str, accept: str, form: str, expected: str
) -> None:
    path = f"categories?format={form}" if form else "categories"
    found = ask(client, token, path, Accept=accept)
    assert found.mimetype == expected
    assert {"Accept", "Authorization"} <= set(found.vary)
    assert found.headers["Cache-Control"] == "private, no-store"


@pytest.mark.parametrize("call", CALLS)
def test_only_a_moderator_of_the_site_may_read(client: FlaskClient, token: str, call: str) -> None:
    name, query = CALLS[call]
    path = f"{STATISTICS}/{call}?{query}"
    test_openapi.assert_described(answer(client, token, f"{call}?{query}"), name)
    assert client.get(path).status_code == 401
    other = moderators.token(account_holders.account("bob", account_holders.OWNER))
    elsewhere = path.replace("/demo/", "/blog/")
    site_settings.add(
        "blog", [moderators.ORIGIN], scheme=sample_threads.SETTINGS.scheme, now=sample_threads.START
    )
    refused = client.get(elsewhere, headers=moderators.bearer(other))
    assert (refused.status_code, refused.get_json()["code"]) == (401, "token-of-other-site")
    foreign = {**moderators.bearer(token), "Origin": "https://evil.example"}
    assert client.get(path, headers=foreign).status_code == 403
    site_settings.change("demo", options={"moderation": False})
    assert client.get(path, headers=moderators.bearer(token)).status_code == 403


@pytest.mark.parametrize(
    ("path", "field", "code"),
    [
        ("categories?under=a//b", "under", "bad-category"),
        ("categories?under=a/b/c/d", "under", "category-too-deep"),
        ("categories?under=", "under", "required"),
        ("categories?limit=0", "limit", "out-of-range"),
        ("categories?limit=1001", "limit", "out-of-range"),
        ("categories?format=xml", "format", "unknown-value"),
        ("categories?cursor=forged", "cursor", "bad-cursor"),
        ("categories?author=g:ann", "author", "unknown-field"),
        ("category-commenters", "category", "required"),
        (f"category-commenters?category={'x' * 51}", "category", "item-too-long"),
        ("category-commenters?category=%00", "category", "bad-characters"),
        ("thread-commenters", "thread", "no-thread"),
        ("author-threads", "author", "required"),
        (f"author-threads?author={'x' * 201}", "author", "too-long"),
        ("audiences", "audiences", "required"),
        ("audiences?audiences=[]", "audiences", "not-json-object"),
        ("audience-cost?audiences={}", "audiences", "required"),
        ('audience-cost?audiences={"x":{}}', "audiences.x", "audience-form"),
        (f"audiences?audiences={quote(TWO)}&limit=1", "limit", "unknown-field"),
        (f"audience-commenters?audiences={quote(TWO)}", "audiences", "too-many-items"),
        (f"audiences?audiences={'x' * 6001}", "audiences", "too-long"),
    ],
)
def test_an_invalid_request_is_refused_by_field(
    client: FlaskClient, token: str, path: str, field: str, code: str
) -> None:
    found = ask(client, token, path)
    assert found.status_code == 400, found.text
    assert (found.get_json()["field"], found.get_json()["code"]) == (field, code)


@pytest.mark.parametrize("call", ["author-categories", "author-threads"])
def test_the_longest_author_id_fits_the_stores_index(
    client: FlaskClient, token: str, call: str
) -> None:
    longest = "\N{GRINNING FACE}" * 200
    assert ask(client, token, f"{call}?author={quote(longest)}").status_code == 200


def test_a_cursor_is_valid_only_for_its_own_report(client: FlaskClient, token: str) -> None:
    cursor = answer(client, token, "category-commenters?category=sport&limit=1")["cursor"]
    same = f"category-commenters?category=SPORT&limit=2&cursor={cursor}"
    assert [each["author"] for each in answer(client, token, same)["commenters"]] == [
        "g:bob", "g:cid"
    ]  # fmt: skip
    for path in ("category-commenters?category=news", "thread-commenters?thread=a", "categories?"):
        found = ask(client, token, f"{path}&cursor={cursor}")
        assert (found.status_code, found.get_json()["code"]) == (400, "bad-cursor")


def test_a_page_reads_its_rows_and_the_moderators_session(
    client: FlaskClient, token: str, engine: inprocess.Engine
) -> None:
    for call, lines, reads in (
        ("category-commenters?category=sport", 3, 3),
        ("category-commenters?category=sport&limit=2", 2, 2),
        ("author-categories?author=g:ann", 4, 4),
        ("author-threads?author=g:ann", 3, 6),
    ):
        ask(client, token, call)  # Read the site's settings into the cache.
        with testing.meter(engine) as cost:
            (found, _) = answer(client, token, call).values()
        assert len(found) == lines
        assert (cost.reads, cost.writes) == (reads + 2, 0)
