"""Readers who prove a mail address own the comments that were imported under it."""

import re

import pytest
from flask.testing import FlaskClient

from comments import config
from comments.accounts import identities, reader_accounts
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
from tests.support.people import api_requests
from tests.support.people.account_holders import SECRET, here
from tests.support.threads import sample_threads

pytestmark = pytest.mark.settings(mail=True)

ANN, BOB = "Ann@example.org", "bob@example.org"
ASK = "/api/v1/sites/demo/sign-in"
ME = "/api/v1/sites/demo/author"
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
    assert (bob["claimed"], ann["claimed"]) == (False, True)
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


@pytest.mark.embedded
def test_a_claim_costs_what_the_documents_say(readers: Readers, engine: inprocess.Engine) -> None:
    """The number of imported comments makes no difference: no comment is read or written."""
    site = site_settings.get("demo")
    people = {
        address: reader_accounts.sign_in(
            reader_accounts.Reader(identities.of_address(address), "R"), secret=SECRET, now=here()
        )
        for address in (ANN, BOB)
    }
    costs = []
    for address in (BOB, ANN, ANN):
        with testing.meter(engine) as cost:
            author_links.claim(site, address, people[address], secret=SECRET, now=here())
        costs.append((cost.reads + cost.empty, cost.writes))
    assert costs == [(1, 0), (3, 2), (2, 0)]
    sample_threads.post(site, "by a guest", author=sample_threads.author("guest"), thread="t")
    readers.deliver()
    with testing.meter(engine) as cost:
        author_links.link("demo", "g:guest", IMPORTED, sample_threads.ADA, now=here())
    assert (cost.reads + cost.empty, cost.writes) == (6, 2)
