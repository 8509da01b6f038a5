"""Readers who prove a mail address own the comments that were imported under it."""

import re
from collections.abc import Callable, Iterator

import flask
import pytest
from flask.testing import FlaskClient

from comments import config
from comments.accounts import accounts, identities, reader_accounts
from comments.accounts.links import email_login
from comments.domain import records
from comments.domain.ids import imported_ids
from comments.events import audit_log
from comments.moderation.policy import author_links, policy_changes
from comments.sites import site_settings
from comments.store import connection
from comments.transfer import personal_data
from comments.upkeep import scheduler, wiring
from datastore_emulator import inprocess, testing
from tests.support.histories import counter_oracle
from tests.support.outside import mail_server
from tests.support.people import account_holders, api_requests, console_browser
from tests.support.people.account_holders import SECRET, here
from tests.support.threads import sample_threads
from tests.system import test_cost_table

pytestmark = pytest.mark.settings(mail=True)

ANN, BOB = "Ann@example.org", "bob@example.org"
ASK = "/api/v1/sites/demo/sign-in"
ME = "/api/v1/sites/demo/author"
CLAIMS = "/api/v1/sites/demo/claims"
IMPORTED = imported_ids.author_ids_of_address(SECRET, "demo", ANN)[0]


class Readers:
    """People who sign in by mail, on a site with a comment that was imported under ANN."""

    def __init__(self, client: FlaskClient, box: mail_server.Box, app: config.Settings) -> None:
        self.client, self.box, self.settings = client, box, app
        self.id = self.bring("imported")
        self.comment = f"{api_requests.ONE}{self.id}"

    def bring(self, text: str) -> str:
        """Import a comment under ANN, and return its id."""
        node = sample_threads.node(text, author=IMPORTED)
        sample_threads.store_imported(records.ThreadName("demo", "t"), node)
        self.deliver()
        return node.id

    def deliver(self) -> None:
        made = scheduler.Scheduler(handlers=wiring.handlers(self.settings))
        while events := counter_oracle.events():
            made.deliver(events)

    def enter(self, address: str) -> dict:
        asked = self.client.post(ASK, json={"email": address})
        self.deliver()
        links = re.findall(r"/sign-in#(\S+)", self.box.text())
        code = email_login.code(links[-1], secret=SECRET, now=here())
        sent = {"key": api_requests.answer(asked)["key"], "code": code, "name": "Reader"}
        return api_requests.answer(self.client.post(f"{ASK}/code", json=sent))


@pytest.fixture
def readers(
    store: connection.Store, client: FlaskClient, box: mail_server.Box, settings: config.Settings
) -> Readers:
    del store
    return Readers(client, box, settings)


def test_a_reader_who_proves_the_address_may_do_what_the_author_could(
    client: FlaskClient, readers: Readers, site: records.Site
) -> None:
    site_settings.change(site.id, options={"inbox": True})
    bob, ann = readers.enter(BOB), readers.enter(ANN)
    assert (bob["claimed"], ann["claimed"]) == (0, 1)
    mine, theirs = api_requests.bearer(ann), api_requests.bearer(bob)
    listed = client.get("/api/v1/sites/demo/held?thread=t&claimed=1", headers=mine)
    assert [each["id"] for each in api_requests.answer(listed)["comments"]] == [readers.id]
    plain = client.get("/api/v1/sites/demo/held?thread=t", headers=mine)
    assert api_requests.answer(plain)["comments"] == []
    vote = client.put(f"{readers.comment}/vote", json={"value": 1}, headers=mine)
    assert api_requests.refused(vote, 403) == "own-comment"
    answer = {"name": "x", "body": "An answer", "parent": readers.id}
    api_requests.answer(client.post(api_requests.THREAD, json=answer, headers=theirs))
    readers.deliver()
    followed = client.put("/api/v1/sites/demo/following?thread=t", headers=mine)
    assert followed.status_code == 200
    unread = api_requests.answer(client.get("/api/v1/sites/demo/inbox", headers=mine))
    assert [reply["comment"]["reply_to"] for reply in unread["replies"]] == [readers.id]
    exported = api_requests.answer(client.get(ME, headers=mine))["comments"]
    assert [each["id"] for each in exported] == [readers.id]
    refused = client.delete(readers.comment, headers=theirs)
    assert api_requests.refused(refused, 403) == "not-own-comment"
    changed = client.patch(readers.comment, json={"body": "New"}, headers=mine)
    assert api_requests.refused(changed, 403) == "edit-window-over"
    assert client.delete(readers.comment, headers=mine).status_code == 200
    assert [entry.verb for entry in audit_log.log("demo", subject=f"author:{IMPORTED}")] == [
        "claim"
    ]


def test_no_answer_before_the_proof_depends_on_the_imported_comments(
    client: FlaskClient, readers: Readers
) -> None:
    known, unknown = (client.post(ASK, json={"email": address}) for address in (ANN, BOB))
    assert known.status_code == unknown.status_code == 202
    assert known.json is not None
    assert unknown.json is not None
    assert known.json.keys() == unknown.json.keys()
    for asked in (known, unknown):
        sent = {"key": api_requests.answer(asked)["key"], "code": "aaaa bbbb", "name": "Eve"}
        assert api_requests.refused(client.post(f"{ASK}/code", json=sent), 401) == "wrong-code"
    assert author_links.of_author(IMPORTED) == []
    del readers


def test_staff_end_a_claim_and_a_new_sign_in_does_not_repeat_it(
    client: FlaskClient, readers: Readers
) -> None:
    ann = readers.enter(ANN)
    (claim,) = author_links.of_author(IMPORTED)
    author_links.unlink("demo", IMPORTED, claim.claimant, sample_threads.ADA, now=here())
    refused = client.delete(readers.comment, headers=api_requests.bearer(ann))
    assert api_requests.refused(refused, 403) == "not-own-comment"
    assert not readers.enter(ANN)["claimed"]
    # An erasure of the imported author does not end the refusal.
    assert personal_data.erase(IMPORTED, now=here()).is_done
    readers.bring("imported later")
    assert not readers.enter(ANN)["claimed"]
    author_links.allow_claims("demo", IMPORTED, sample_threads.ADA, now=here())
    assert readers.enter(ANN)["claimed"]


def test_a_site_without_claims_gives_no_rights(client: FlaskClient, readers: Readers) -> None:
    ann = readers.enter(ANN)
    site_settings.change("demo", options={"claims": False})
    refused = client.delete(readers.comment, headers=api_requests.bearer(ann))
    assert api_requests.refused(refused, 403) == "not-own-comment"
    assert not readers.enter(ANN)["claimed"]


def test_a_ban_of_the_imported_author_applies_to_the_reader(
    client: FlaskClient, readers: Readers
) -> None:
    policy_changes.ban("demo", IMPORTED, sample_threads.ADA, now=here())
    ann = readers.enter(ANN)
    posted = client.post(
        api_requests.THREAD, json={"name": "x", "body": "b"}, headers=api_requests.bearer(ann)
    )
    assert api_requests.refused(posted, 403) == "author-banned"


def test_a_reader_gives_up_comments_and_cannot_claim_them_again(
    client: FlaskClient, readers: Readers
) -> None:
    readers.bring("another one")
    ann = readers.enter(ANN)
    assert ann["claimed"] == 2
    mine = api_requests.bearer(ann)
    assert api_requests.answer(client.delete(CLAIMS, headers=mine)) == {"ended": 1}
    assert api_requests.answer(client.delete(CLAIMS, headers=mine)) == {"ended": 0}
    refused = client.delete(readers.comment, headers=mine)
    assert api_requests.refused(refused, 403) == "not-own-comment"
    assert readers.enter(ANN)["claimed"] == 0
    entry, claim = audit_log.log("demo", subject=f"author:{IMPORTED}")
    assert (entry.verb, claim.verb) == ("unlink-authors", "claim")
    assert entry.actor == claim.actor


def _measured(
    readers: Readers, engine: inprocess.Engine, desk: console_browser.Desk
) -> Iterator[str]:
    """Yield the lines of the table in docs/costs.md.

    The number of imported comments makes no difference: no comment is read or written.
    """
    site = site_settings.get("demo")
    bob, ann = (
        reader_accounts.sign_in(
            reader_accounts.Reader(identities.of_address(address), "R"), secret=SECRET, now=here()
        )
        for address in (BOB, ANN)
    )

    def line(name: str, act: Callable[[], object]) -> str:
        with testing.meter(engine) as cost:
            act()
        reads = test_cost_table.Reads(cost.reads, cost.reads + cost.empty)
        return f"| {name} | {reads} | {cost.writes + cost.deletes} |"

    def claim(address: str, account: accounts.Account) -> Callable[[], object]:
        return lambda: author_links.claim(site, address, account, secret=SECRET, now=here())

    def change(what: Callable[..., None], other: str) -> Callable[[], object]:
        return lambda: what("demo", "g:guest", other, sample_threads.ADA, now=here())

    def show() -> None:
        desk.page("/author?id=g%3Aguest")

    yield line("claim, with no imported comments", claim(BOB, bob))
    yield line("claim for the first time", claim(ANN, ann))
    yield line("claim again", claim(ANN, ann))
    show()  # fills the caches
    yield line("author's page: one comment, no links", show)
    yield line("link of two authors without other links", change(author_links.link, "g:other"))
    yield line("link to one of two linked authors", change(author_links.link, IMPORTED))
    yield line("author's page: three comments, four linked ids", show)
    yield line("end of a link", change(author_links.unlink, IMPORTED))
    yield line(
        "end of a claim by its reader",
        lambda: author_links.give_up_claims("demo", ann.author, ann.actor, now=here()),
    )


@pytest.mark.embedded
@pytest.mark.usefixtures("quick_passwords")
def test_claims_and_links_cost_what_the_documents_say(
    readers: Readers, engine: inprocess.Engine, app: flask.Flask, site: records.Site
) -> None:
    for guest in ("guest", "other"):
        author = records.Author(guest, id=f"g:{guest}")
        sample_threads.post(site, f"by {guest}", author=author, thread="t")
    readers.deliver()
    account_holders.account("owner", account_holders.OWNER)
    lines = list(_measured(readers, engine, console_browser.Desk(app, "owner")))
    text = test_cost_table.DOCS.read_text().partition("### Claims and links of authors")[2]
    listed = text.partition("\n### ")[0]
    assert lines == re.findall(r"^\| .* / .* \| \d+ \|$", listed, re.MULTILINE)
