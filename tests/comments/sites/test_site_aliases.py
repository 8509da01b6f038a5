"""A site has other ids besides its first one, and requests may use any of them."""

import pytest
from flask.testing import FlaskClient

from comments import errors
from comments.domain import records
from comments.events import audit_log
from comments.sites import site_aliases, site_deletion, site_settings, site_setup
from comments.store import connection
from tests.support.people.console_browser import Desk
from tests.support.threads import sample_threads

NOW = sample_threads.START
ADA = records.Actor("cli", "Ada")
SCHEME = sample_threads.SETTINGS.scheme


def rename(new: str) -> records.Site:
    return site_aliases.rename("demo", new, ADA, now=NOW)


def test_a_renamed_site_keeps_its_stored_id(store: connection.Store, site: records.Site) -> None:
    assert (site.id, site.snippet_id) == ("demo", "demo")
    for new in ("garden", "park", "garden", "demo"):
        assert rename(new).snippet_id == site_settings.get("demo").snippet_id == new
    assert rename("demo") == site
    for name in ("demo", "garden", "park"):
        assert site_aliases.canonical_id(name) == "demo"
    for name in ("nobody", "No Id", ""):
        assert site_aliases.canonical_id(name) == name
    assert [entry.verb for entry in audit_log.log("demo")] == ["rename-site"] * 4


def test_no_two_sites_share_an_id(store: connection.Store, site: records.Site) -> None:
    site_settings.add("blog", [], scheme=SCHEME, now=NOW)
    rename("garden")
    with pytest.raises(errors.Conflict, match="site-exists"):
        rename("blog")
    with pytest.raises(errors.Conflict, match="site-exists"):
        site_aliases.rename("blog", "garden", ADA, now=NOW)
    with pytest.raises(errors.Conflict, match="site-exists"):
        site_settings.add("garden", [], scheme=SCHEME, now=NOW)
    with pytest.raises(errors.BadInput, match="bad-id"):
        rename("No Id")
    with pytest.raises(errors.NotFound):
        site_aliases.rename("nobody", "new", ADA, now=NOW)


def test_a_site_has_few_aliases(store: connection.Store, site: records.Site) -> None:
    for number in range(site_aliases.MOST):
        rename(f"garden-{number}")
    with pytest.raises(errors.Conflict, match="too-many-aliases"):
        rename("one-more")
    assert rename("garden-0").snippet_id == "garden-0"


def test_requests_may_use_any_id_of_a_site(
    client: FlaskClient, site: records.Site, store: connection.Store
) -> None:
    sample_threads.post(site, "hello")
    rename("garden")
    by_id, by_alias = (
        client.get(f"/api/v1/sites/{name}/comments?thread=page") for name in ("demo", "garden")
    )
    assert by_id.status_code == by_alias.status_code == 200
    assert by_id.data == by_alias.data
    (origin,) = site.origins
    posted = client.post(
        "/api/v1/sites/garden/comments?thread=page",
        json={"name": "Ann", "body": "by the alias"}, headers={"Origin": origin},
    )  # fmt: skip
    assert posted.status_code == 201
    assert "by the alias" in client.get("/embed/demo?thread=page").text
    assert "by the alias" in client.get("/embed/garden?thread=page").text
    assert client.get("/feeds/garden").status_code == 200
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    preflight = client.options("/api/v1/sites/garden/comments", headers=asked)
    assert preflight.headers["Access-Control-Allow-Origin"] == origin
    assert client.get("/api/v1/sites/nobody/comments?thread=page").status_code == 404


def test_a_page_with_an_alias_counts_for_the_site(
    client: FlaskClient, site: records.Site, store: connection.Store
) -> None:
    rename("garden")
    for _ in range(2):
        client.get(
            "/api/v1/sites/garden/comments?thread=page", headers={"Origin": "https://else.example"}
        )
    wrong = site_setup.get("demo").wrong
    assert [visit.origin for visit in wrong] == ["https://else.example"]
    assert site_aliases.known_id("garden") == "demo"
    assert site_aliases.known_id("nobody") == ""


def test_a_deleted_site_is_not_found_by_an_alias(
    client: FlaskClient, site: records.Site, store: connection.Store
) -> None:
    rename("garden")
    page = "/api/v1/sites/garden/comments?thread=page"
    assert client.get(page).status_code == 200
    site_deletion.delete("demo", ADA, now=NOW)
    assert client.get(page).status_code == 404
    with pytest.raises(errors.NotFound):
        rename("park")
    site_deletion.restore("demo", ADA, now=NOW)
    assert client.get(page).status_code == 200


def test_an_owner_renames_a_site_in_the_console(owner: Desk, site: records.Site) -> None:
    owner.settle("/settings/rename", short_name=" garden ")
    assert 'value="garden"' in owner.page("/settings")
    assert "data-site=&#34;garden&#34;" in owner.page("/start")
    assert "Changed the short name" in owner.page("/log")
    owner.settle("/settings/rename", short_name="No Id", status=400)
