"""A deleted site answers every request as a site that does not exist."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from comments.domain import records
from comments.sites import site_deletion
from tests.support import datastores
from tests.support.every_route import CALLERS, ROWS, STAFF, WINDOW, AllRoles, Row, opened

pytestmark = pytest.mark.slow

# Redirects of addresses that people type look up nothing.
TYPED = {"/admin/sites/<site:site_id>", "/admin/sites/<site:site_id>/"}
UNDELETE = "/admin/sites/<site:site_id>/undelete"
ABOUT_SITE = [
    row for row in ROWS
    if ("site_id" in row.rule or "comment_id" in row.rule) and row.rule not in {UNDELETE, *TYPED}
]  # fmt: skip
OF_LINKS = ("/subscriptions/confirm", "/decisions", "/sign-in")
LINKS = [row for row in ROWS if row.rule.startswith(OF_LINKS) and row.made is not None]


@pytest.fixture(scope="module")
def deleted(shared_datastore: datastores.Datastore) -> Iterator[tuple[AllRoles, records.Comment]]:
    """A service whose site is deleted, and a comment of the site."""
    with opened(AllRoles, shared_datastore) as service:
        comment = service.comment()
        ada = records.Actor("cli", "Ada")
        site_deletion.delete("demo", ada, now=datetime.now(UTC))
        yield service, comment


@pytest.mark.parametrize("row", ABOUT_SITE, ids=lambda row: f"{row.method} {row.rule}")
def test_every_call_of_a_deleted_site_is_not_found(
    deleted: tuple[AllRoles, records.Comment], row: Row
) -> None:
    service, comment = deleted
    statuses = {}
    for caller in CALLERS:
        answer = service.ask(row, caller, comment.id)
        statuses[caller] = answer.status_code
        if answer.is_json:
            assert answer.json["code"] in {"site-not-found", "comment-not-found"}
    if not row.rule.startswith("/admin"):
        # A form of the service's own pages asks for the session first.
        is_form = row.rule.startswith("/moderate") and row.form == {"origin": WINDOW["origin"]}
        first = {caller: 403 for caller in CALLERS if is_form and caller not in STAFF}
        assert statuses == dict.fromkeys(CALLERS, 404) | first
        return
    # Callers without a role get the same answer for every site. Owner's pages refuse moderators
    # before or after they look up the site.
    expected = {caller: row.statuses.get(caller, row.others) for caller in CALLERS}
    refused = {caller: status for caller, status in expected.items() if caller not in STAFF}
    assert statuses.pop("moderator") in {403, 404}
    assert statuses == {**refused, "owner": 404, "elsewhere": 404}


@pytest.mark.parametrize("row", LINKS, ids=lambda row: f"{row.method} {row.rule}")
def test_links_in_mails_of_a_deleted_site_are_refused(
    deleted: tuple[AllRoles, records.Comment], row: Row
) -> None:
    service, comment = deleted
    assert service.ask(row, "nobody", comment.id).status_code in {400, 403}


def test_an_owner_sees_a_deleted_site_in_the_list_and_a_moderator_does_not(
    deleted: tuple[AllRoles, records.Comment],
) -> None:
    service, _ = deleted
    pages = {caller: service.client(caller).get("/admin").text for caller in STAFF}
    assert "Take back demo" in pages["owner"]
    assert "/sites/demo/queue" not in pages["owner"] + pages["moderator"]
    assert "demo" not in pages["moderator"].replace("demo.example", "")
