"""A deleted site does not exist for anybody but its owners, until they take it back."""

from datetime import timedelta

import pytest
from flask.testing import FlaskClient

from comments import errors
from comments.domain import records
from comments.events import audit_log
from comments.sites import site_deletion, site_settings
from comments.store import connection
from tests.support import store_snapshot
from tests.support.threads import sample_threads

NOW = sample_threads.START
ADA = records.Actor("a:ada", "Ada")


def test_a_deleted_site_is_found_no_more_and_taken_back_exactly_as_it_was(
    store: connection.Store, site: records.Site
) -> None:
    sample_threads.post(site, "hello")
    before = store_snapshot.everything("AuditEntry")
    deleted = site_deletion.delete("demo", ADA, now=NOW)
    assert site_deletion.ends(deleted) == NOW + timedelta(days=30)
    for find in (site_settings.get, site_settings.current):
        with pytest.raises(errors.NotFound, match="site-not-found"):
            find("demo")
    assert not site_settings.is_active("demo")
    assert not site_settings.is_known("demo")
    assert site_settings.every() == []
    assert site_deletion.deleted_sites() == site_settings.every_kept() == [deleted]
    assert site_settings.scheme_of("demo") == site.scheme
    site_deletion.restore("demo", ADA, now=NOW)
    assert site_settings.get("demo") == site
    assert site_deletion.deleted_sites() == []
    assert store_snapshot.everything("AuditEntry") == before
    verbs = [entry.verb for entry in audit_log.log("demo")]
    assert sorted(verbs) == ["delete-site", "undelete-site"]


def test_repeating_a_deletion_does_not_move_its_end(
    store: connection.Store, site: records.Site
) -> None:
    for days in (0, 3):
        site_deletion.delete("demo", ADA, now=NOW + timedelta(days=days))
    (deleted,) = site_deletion.deleted_sites()
    assert deleted.deleted == NOW
    assert len(audit_log.log("demo")) == 1
    for _ in range(2):
        site_deletion.restore("demo", ADA, now=NOW)
    assert len(audit_log.log("demo")) == 2


def test_a_site_whose_erasure_has_begun_cannot_be_taken_back(
    store: connection.Store, site: records.Site
) -> None:
    site_deletion.delete("demo", ADA, now=NOW)
    site_deletion.begin_erasure("demo", now=NOW)
    with pytest.raises(errors.Conflict, match="site-erased"):
        site_deletion.restore("demo", ADA, now=NOW)
    assert [each.id for each in site_deletion.deleted_sites()] == ["demo"]


def test_the_id_of_a_deleted_site_stays_taken(store: connection.Store, site: records.Site) -> None:
    site_deletion.delete("demo", ADA, now=NOW)
    with pytest.raises(errors.Conflict, match="site-exists"):
        site_settings.add("demo", [], scheme=site.scheme, now=NOW)
    assert site_settings.prepare_demo([], scheme=site.scheme, now=NOW) is None


@pytest.mark.parametrize(
    "change", [site_deletion.delete, site_deletion.restore], ids=["delete", "restore"]
)
def test_an_unknown_site_is_neither_deleted_nor_taken_back(
    store: connection.Store, change: object
) -> None:
    for name in ("nobody", ""):
        with pytest.raises(errors.NotFound, match="site-not-found"):
            change(name, ADA, now=NOW)  # type: ignore[operator]


def test_a_row_of_a_site_that_is_not_being_erased_is_not_removed(
    store: connection.Store, site: records.Site
) -> None:
    site_deletion.remove("demo")
    site_deletion.delete("demo", ADA, now=NOW)
    site_deletion.remove("demo")
    assert len(site_deletion.deleted_sites()) == 1


def test_pages_and_their_cached_answers_follow_a_deletion(
    client: FlaskClient, site: records.Site, store: connection.Store
) -> None:
    page = "/api/v1/sites/demo/comments?thread=page"
    sample_threads.post(site, "hello")
    assert [client.get(page).status_code for _ in range(3)] == [200] * 3
    site_deletion.delete("demo", ADA, now=NOW)
    refused = client.get(page)
    assert (refused.status_code, refused.json["code"]) == (404, "site-not-found")
    site_deletion.restore("demo", ADA, now=NOW)
    assert client.get(page).status_code == 200
