"""A moderator's token reads declared counters, as JSON and CSV, page by page; nobody else may."""

from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments.domain import records
from comments.domain.counters import declared_counters
from comments.events import dispatcher
from comments.sites import site_settings
from comments.store import connection
from comments.tree.counters.declared import declarations, declared_backfill
from comments.upkeep import wiring
from tests.support.histories import counter_oracle
from tests.support.people import account_holders, moderators
from tests.support.people.account_holders import moderator
from tests.support.threads import sample_threads

pytestmark = pytest.mark.usefixtures("store", "site", "quick_passwords")

STATISTICS = "/api/v1/sites/demo/moderation/statistics"
NUMBERS = "counter-numbers?counter=filed"
NOW = sample_threads.START + timedelta(days=9)


@pytest.fixture(autouse=True)
def _counted(store: connection.Store, site: records.Site) -> None:
    site_settings.change(site.id, origins=[moderators.ORIGIN])
    filed = sample_threads.filing(site, "sport/football", "news")
    for number, category in enumerate(["sport/football", "news", "news"]):
        sample_threads.post(
            filed, f"{number}", thread=category, author=sample_threads.author("ann"),
            categories=(category,), now=sample_threads.START + timedelta(days=number),
        )  # fmt: skip
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)
    declared = declared_counters.declare("filed", ["status = approved"], ["category", "day"])
    declarations.add("demo", declared, now=NOW)


@pytest.fixture
def token() -> str:
    return moderators.token(account_holders.account("ann", moderator()))


def ask(client: FlaskClient, token: str, call: str) -> TestResponse:
    return client.get(f"{STATISTICS}/{call}", headers=moderators.bearer(token))


def answer(client: FlaskClient, token: str, call: str) -> Any:
    found = ask(client, token, call)
    assert found.status_code == 200, found.text
    return found.get_json()


def test_counters_say_what_they_count_and_when_they_are_complete(
    client: FlaskClient, token: str
) -> None:
    counts = "comments where status = approved by category, day"
    for complete in (False, True):
        assert answer(client, token, "counters") == {
            "counters": [{"name": "filed", "counts": counts, "complete": complete}]
        }
        assert answer(client, token, NUMBERS)["complete"] is complete
        declared_backfill.complete("demo")


def test_the_numbers_are_listed_by_their_keys_as_json_and_csv(
    client: FlaskClient, token: str
) -> None:
    declared_backfill.complete("demo")
    found = answer(client, token, f"{NUMBERS}&under=Sport")
    line = {"day": "2026-01-02", "thread": "", "author": "", "number": 1}
    assert found["numbers"] == [
        {"category": "sport", **line}, {"category": "sport/football", **line}
    ]  # fmt: skip
    table = ask(client, token, f"{NUMBERS}&since=2026-01-03&until=2026-01-03&format=csv")
    assert table.text == "category,day,thread,author,number\nnews,2026-01-03,,,1\n"


def test_pages_contain_each_number_once(client: FlaskClient, token: str) -> None:
    declared_backfill.complete("demo")
    whole, found, cursor = answer(client, token, NUMBERS)["numbers"], [], ""
    while cursor is not None:
        page = answer(client, token, f"{NUMBERS}&limit=1{cursor and f'&cursor={cursor}'}")
        found += page["numbers"]
        cursor, last = page["cursor"], cursor
    assert found == whole
    assert len(whole) == 4
    changed = declared_counters.declare("filed", [], ["category"])
    declarations.change("demo", changed, now=NOW)
    refused = ask(client, token, f"{NUMBERS}&limit=1&cursor={last}")
    assert (refused.status_code, refused.get_json()["code"]) == (400, "bad-cursor")


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ("counter=nothing", 404, None),
        ("", 400, "counter"),
        ("counter=filed&since=yesterday", 400, "since"),
        ("counter=filed&since=2026-01-03&until=2026-01-02", 400, "since"),
        ("counter=total&under=news", 400, "under"),
        ("counter=total&until=2026-01-02", 400, "until"),
        ("counter=filed&under=%3D1", 400, "under"),
        ("counter=filed&limit=0", 400, "limit"),
    ],
)
def test_bad_queries_are_refused_by_the_name_of_the_field(
    client: FlaskClient, token: str, query: str, status: int, field: str | None
) -> None:
    declarations.add("demo", declared_counters.declare("total"), now=NOW)
    refused = ask(client, token, f"counter-numbers?{query}")
    assert (refused.status_code, refused.get_json().get("field")) == (status, field)


@pytest.mark.parametrize("call", ["counters", NUMBERS])
def test_only_a_moderator_of_the_site_may_read(client: FlaskClient, call: str) -> None:
    assert client.get(f"{STATISTICS}/{call}").status_code == 401
    guest = {"Authorization": "Bearer g.something"}
    assert client.get(f"{STATISTICS}/{call}", headers=guest).status_code == 401
