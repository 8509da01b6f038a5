"""Test a site's settings: id, origins, caching, and the scheme, which must not change."""

import pytest

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.domain.text.addresses import web_origins
from comments.events import audit_log
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.models import comment_rows
from tests.support.threads import raw_changes, sample_threads

SCHEME = sample_threads.SETTINGS.scheme


@pytest.fixture(autouse=True)
def _entered(store: connection.Store) -> None:
    """Run all these tests inside the store."""


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("https://example.com", "https://example.com"),
        ("HTTPS://Example.com/", "https://example.com"),
        ("https://example.com:443", "https://example.com"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://[::1]:80", "http://[::1]"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("https://my_shop.example.", "https://my_shop.example."),
        ("https://xn--mnchen-3ya.example", "https://xn--mnchen-3ya.example"),
    ],
)
def test_an_origin_is_stored_as_browsers_send_it(given: str, stored: str) -> None:
    assert web_origins.check(given) == stored


@pytest.mark.parametrize(
    "given",
    [
        "",
        "null",
        "*",
        "example.com",
        "//example.com",
        "ftp://example.com",
        "https://",
        "https://example.com/path",
        "https://example.com?x",
        "https://example.com#x",
        "https://user@example.com",
        "https://example.com:99999",
        "https://example.com:x",
        "https://münchen.example",
        "https://example.com https://evil.example",
        "https://exa\nmple.com",
        "https://a;b",
        "https://a;script-src",
        "https://*",
        "https://*.example.com",
        "https://a,b",
        "https://a'b",
        "https://a%2eb",
        "https://a..b",
        "https://.b",
        "https://-a.example",
        "https://a-.example",
        f"https://{'a' * 64}.example",
        f"https://{'a.' * 127}example",
        "https://1",
        "https://1.2.3",
        "https://1.2.3.256",
        "https://01.2.3.4",
        "https://0x7f",
        "https://[::1",
        "https://[0:0:0:0:0:0:0:1]",
        "https://[::1%25eth0]",
        "https://[v1.a]",
    ],
)
def test_anything_else_is_not_an_origin(given: str) -> None:
    with pytest.raises(errors.BadInput, match="origin"):
        web_origins.check(given)


@pytest.mark.parametrize("site_id", ["", "A", "a b", "a/b", "a#b", "ä", "x" * 64, "a_b", "demo\n"])
def test_a_malformed_site_id_is_refused_and_not_found(site_id: str) -> None:
    with pytest.raises(errors.BadInput, match="site"):
        site_settings.add(site_id, ["https://example.com"], scheme=SCHEME, now=sample_threads.START)
    with pytest.raises(errors.NotFound):
        site_settings.get(site_id)


def test_a_site_is_added_once(site: records.Site) -> None:
    with pytest.raises(errors.Conflict):
        site_settings.add("demo", [], scheme=SCHEME, now=sample_threads.START)
    assert site_settings.get("demo") == site
    assert site_settings.every() == [site]


def test_a_process_sees_its_own_change_at_once(site: records.Site) -> None:
    site_settings.get("demo")
    changed = site_settings.change("demo", origins=["https://new.example"], query_keys=["p"])
    assert changed.origins == ("https://new.example",)
    assert site_settings.get("demo") == changed
    assert site_settings.change("demo", keep_trailing_slash=True).query_keys == ("p",)
    with pytest.raises(errors.NotFound):
        site_settings.change("nobody")


def test_only_lowered_levels_prevent_the_start(site: records.Site) -> None:
    for other in (sorthash.Scheme(levels=20), sorthash.Scheme("0123456789", 3)):
        site_settings.check_levels(other)
        assert site_settings.get("demo").scheme == SCHEME
    with pytest.raises(errors.Misconfigured, match="site rescheme demo --levels 3"):
        site_settings.check_levels(sorthash.Scheme(levels=3))
    assert site_settings.get("demo").scheme == SCHEME


def test_a_site_of_an_older_release_gets_the_levels_of_the_settings() -> None:
    site_settings.add("demo", [], scheme=SCHEME, now=sample_threads.START)
    raw_changes.change(comment_rows.site_key("demo"), levels=0)
    site_settings.check_levels(sorthash.Scheme(levels=5))
    assert reads.get(comment_rows.site_key("demo")).levels == 5


def test_only_a_fresh_store_gets_a_demo_site() -> None:
    now = sample_threads.START
    added = site_settings.prepare_demo(["http://localhost:8080"], scheme=SCHEME, now=now)
    assert added == site_settings.get("demo")
    assert site_settings.prepare_demo(["http://localhost:9090"], scheme=SCHEME, now=now) is None
    assert [(site.id, site.origins) for site in site_settings.every()] == [
        ("demo", ("http://localhost:8080",))
    ]


def test_a_change_of_another_setting_does_not_change_origins() -> None:
    twice = ["https://a.example", "https://a.example/"]
    added = site_settings.add("twice", twice, scheme=SCHEME, now=sample_threads.START)
    act = audit_log.Act(records.Actor("bob", "Bob"), "settings")
    noted = audit_log.Noted(act, sample_threads.START)
    changed = site_settings.change("twice", cdn_seconds=9, noted=noted)
    assert changed.origins == added.origins
    assert audit_log.log("twice")[0].after == "cdn_seconds"
