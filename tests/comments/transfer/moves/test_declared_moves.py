"""Pages that declare a new canonical address propose a move, and nothing else."""

from datetime import UTC, datetime, timedelta

import flask
import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.sites import site_settings, site_setup
from comments.store import connection
from comments.store.memory import per_process
from comments.transfer.moves import declared_moves, move_journal, move_plan, thread_moves
from datastore_emulator import inprocess, testing
from tests.support.people import account_holders
from tests.support.people.api_requests import refused
from tests.support.people.console_browser import Desk
from tests.support.threads import sample_threads

HOST = "localhost:8080"
HOME = f"http://{HOST}"
NEW = f"{HOME}/new"
COMMENTS = "/api/v1/sites/demo/comments"


@pytest.fixture
def client(client: FlaskClient, site: records.Site, open_store: connection.Store) -> FlaskClient:
    with open_store.context():
        for page in ("old", "taken"):
            sample_threads.post(site, page, thread=f"{HOST}/{page}", url=f"{HOME}/{page}")
    return client


def view(client: FlaskClient, page: str, canonical: str, origin: str | None = HOME) -> None:
    headers = {"Origin": origin} if origin else {}
    query = {"page": f"{HOME}/{page}"} | ({"canonical": canonical} if canonical else {})
    assert client.get(COMMENTS, query_string=query, headers=headers).status_code == 200


def proposed(store: connection.Store, *, after: timedelta = timedelta(0)) -> list[tuple[str, str]]:
    with store.context():
        moves = declared_moves.proposals(site_settings.get("demo"), datetime.now(UTC) + after)
    return [(move.old, move.url) for move in moves]


def expire_moves(store: connection.Store) -> None:
    with store.context():
        move_journal.expire(datetime.now(UTC) + move_journal.TERM)


def test_a_declared_address_is_proposed_in_the_console_for_a_week(
    app: flask.Flask, client: FlaskClient, open_store: connection.Store
) -> None:
    view(client, "old", f"{NEW}?reset=secret#there")
    assert proposed(open_store) == [(f"{HOST}/old", NEW)]
    assert proposed(open_store, after=timedelta(days=8)) == []
    with open_store.context():
        account_holders.account("bob", account_holders.OWNER)
        desk = Desk(app, "bob")
    assert "Pages that say they have moved" in desk.page("/moves")
    form = {"way": "page", "old": f"{HOST}/old", "new": NEW}
    desk.settle("/moves", status=303, planned="1", **form)
    assert "Pages that say they have moved" not in desk.page("/moves")
    assert proposed(open_store) == []


def test_a_page_that_answers_where_its_thread_was_long_before_is_proposed_after_a_preview(
    app: flask.Flask, client: FlaskClient, open_store: connection.Store
) -> None:
    def ask(page: str, origin: str = HOME) -> int:
        query, headers = {"page": f"{HOME}/{page}"}, {"Origin": origin}
        answer = client.get(COMMENTS, query_string=query, headers=headers)
        return int(answer.get_json()["total"])

    with open_store.context():
        account_holders.account("bob", account_holders.OWNER)
        desk = Desk(app, "bob")
    assert ask("old") == 1
    desk.settle("/moves", status=303, way="page", old=f"{HOST}/old", new=NEW, planned="1")
    assert (ask("old", "https://elsewhere.example"), ask("new"), ask("taken")) == (1, 1, 1)
    assert proposed(open_store) == []
    assert [ask("old") for _ in range(2)] == [1, 1]
    assert proposed(open_store) == []  # The owner can still undo the move.
    expire_moves(open_store)
    assert proposed(open_store) == [(f"{HOST}/new", f"{HOME}/old")]
    assert "Pages that say they have moved" not in desk.page("/moves")
    page = desk.page("/moves")
    assert 'aria-label="Show preview of the move to localhost:8080/old"' in page
    offer = page.partition("Pages that answer at another address")[2].partition("</section>")[0]
    assert 'name="planned"' not in offer
    desk.settle("/moves", status=303, way="page", old=f"{HOST}/new", new=f"{HOME}/old", planned="1")
    assert (ask("old"), ask("new"), proposed(open_store)) == (1, 1, [])
    expire_moves(open_store)
    assert proposed(open_store) == [(f"{HOST}/old", NEW)]


def test_a_merge_of_two_pages_with_proposals_keeps_that_of_the_kept_page(
    app: flask.Flask, client: FlaskClient, open_store: connection.Store
) -> None:
    view(client, "old", NEW)
    view(client, "taken", f"{NEW}er")
    with open_store.context():
        account_holders.account("bob", account_holders.OWNER)
        desk = Desk(app, "bob")
    assert sorted(proposed(open_store)) == [(f"{HOST}/old", NEW), (f"{HOST}/taken", f"{NEW}er")]
    form = {"way": "merge", "source": f"{HOST}/old", "target": f"{HOST}/taken"}
    desk.settle("/moves", status=303, planned="1", **form)
    assert "Pages that say they have moved" in desk.page("/moves")
    assert proposed(open_store) == [(f"{HOST}/taken", f"{NEW}er")]
    view(client, "old", "")
    assert f"{HOME}/old" not in [new for _, new in proposed(open_store)]


@pytest.mark.embedded
def test_a_page_at_another_address_costs_one_read_a_day(
    client: FlaskClient, store: connection.Store, engine: inprocess.Engine
) -> None:
    with store.context():
        site = site_settings.get("demo")
        plan = move_plan.of_list(site, [(f"{HOST}/old", NEW)])
        thread_moves.begin(site, plan, "a test", sample_threads.ADA, now=sample_threads.START)
        thread_moves.finish(100)
    counts = []
    for origin in (HOME, HOME, None):
        with testing.meter(engine) as meter:
            view(client, "old", "", origin)
        counts.append((meter.reads, meter.writes))
    assert counts[1] == counts[2]
    assert counts[1][1] == 0


@pytest.mark.parametrize(
    ("page", "canonical", "origin"),
    [
        ("old", "https://elsewhere.example/new", HOME),
        ("old", "http://localhost:808/new", HOME),
        ("old", f"{HOME}/taken", HOME),
        ("old", f"https://{HOST}/old/?x=1", HOME),
        ("none", NEW, HOME),
        ("old", NEW, "https://elsewhere.example"),
        ("old", NEW, "null"),
    ],
)
def test_no_other_declaration_is_proposed(
    client: FlaskClient, open_store: connection.Store, page: str, canonical: str, origin: str
) -> None:
    view(client, page, canonical, origin)
    assert proposed(open_store) == []


def test_an_address_that_is_none_is_refused(client: FlaskClient) -> None:
    query = {"page": NEW, "canonical": "mailto:ann@example.org"}
    response = client.get("/api/v1/sites/demo/comments", query_string=query)
    assert refused(response, 400, "canonical") == "not-a-url"


@pytest.mark.embedded
def test_invented_addresses_are_bounded_and_cost_no_writes_or_reads(
    client: FlaskClient, store: connection.Store, engine: inprocess.Engine
) -> None:
    for number in range(site_setup.MOST_DECLARED + 5):
        view(client, "old", f"{NEW}-{number}", None)
    with store.context():
        kept = site_setup.get("demo").declared
    assert len(kept) == site_setup.MOST_DECLARED
    assert proposed(store) == [(f"{HOST}/old", f"{NEW}-{site_setup.MOST_DECLARED - 1}")]
    with testing.meter(engine) as plain:
        view(client, "taken", f"{HOME}/taken")
    with testing.meter(engine) as declaring:
        view(client, "taken", f"{NEW}-more")
    assert (declaring.reads, declaring.writes) <= (plain.reads, 0)
    per_process.fresh_process(store)
    view(client, "old", f"{NEW}-true")
    assert proposed(store) == [(f"{HOST}/old", f"{NEW}-true")]
    with store.context():
        assert len(site_setup.get("demo").declared) == site_setup.MOST_DECLARED
