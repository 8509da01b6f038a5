"""Test what the service finds out about a page of a site."""

from collections.abc import Callable, Iterator

import msgspec
import pytest

from comments import errors
from comments.domain import records
from comments.sites import page_check
from comments.sites.page_check import Fault, Finding
from comments.store import connection
from tests.support import loopback_servers

SERVICE = "https://comments.example"
SCRIPT = f'<script src="{SERVICE}/widget/flatthread.js" data-site="demo"></script>'
ELEMENT = "<div id=flatthread></div>"
SOUND = SCRIPT + ELEMENT
Check = Callable[..., list[Finding]]


@pytest.fixture(scope="module")
def page() -> Iterator[loopback_servers.Receiver]:
    """A page of the site, with HTTPS."""
    with loopback_servers.receiver(certificate="blog.example") as made:
        yield made


@pytest.fixture
def origin(page: loopback_servers.Receiver, store: connection.Store) -> str:
    page_check.OUTBOUND.put(store, loopback_servers.client(page.port))
    return f"https://blog.example:{page.port}"


@pytest.fixture
def check(page: loopback_servers.Receiver, origin: str, site: records.Site) -> Check:
    """Return a function that checks a page with this HTML and these headers."""
    own = msgspec.structs.replace(site, origins=(origin,))

    def checked(html: str, status: int = 200, **headers: str) -> list[Finding]:
        page.answer, page.status = html.encode(), status
        page.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return page_check.findings("/post", own, SERVICE)

    return checked


@pytest.mark.parametrize(
    ("html", "found"),
    [
        (SOUND, []),
        (ELEMENT, [Finding(Fault.NO_SCRIPT)]),
        (f"<!-- {SOUND} -->", [Finding(Fault.NO_SCRIPT)]),
        (SCRIPT, [Finding(Fault.NO_ELEMENT)]),
        (
            SOUND.replace("https:", "http:"),
            [Finding(Fault.MIXED, "http://comments.example/widget/flatthread.js")],
        ),
        (
            SOUND.replace("comments.", "other."),
            [Finding(Fault.OTHER_SERVICE, "https://other.example/widget/flatthread.js")],
        ),
        (SOUND.replace('"demo"', '"blog"'), [Finding(Fault.OTHER_SITE, "blog")]),
        (
            SCRIPT.replace(' data-site="demo"', "") + "<div id=flatthread data-site=blog></div>",
            [Finding(Fault.OTHER_SITE, "blog")],
        ),
        (SCRIPT.replace(' data-site="demo"', "") + "<div id=flatthread data-site=demo></div>", []),
        (
            f"<meta http-equiv=Content-Security-Policy content=\"default-src 'self'\">{SOUND}",
            [Finding(Fault.POLICY, "script-src"), Finding(Fault.POLICY, "connect-src")],
        ),
        ("", [Finding(Fault.NO_SCRIPT)]),
        ("</p><<<\x00" + SOUND, []),
    ],
)
def test_what_a_page_lacks_is_found(check: Check, html: str, found: list[Finding]) -> None:
    assert check(html) == found


@pytest.mark.parametrize(
    ("policy", "directives"),
    [
        ("", []),
        ("script-src 'self'; connect-src *", ["script-src"]),
        ("script-src https:; connect-src 'self'", ["connect-src"]),
        (f"script-src {SERVICE}; connect-src {SERVICE}", []),
        ("script-src comments.example; connect-src *.example", []),
        (f"default-src {SERVICE}/widget/; connect-src {SERVICE}/api/", []),
        ("script-src-elem 'none'; script-src *; connect-src *", ["script-src-elem"]),
        (f"script-src 'strict-dynamic' {SERVICE}; connect-src *", ["script-src"]),
        (f"connect-src {SERVICE}, script-src 'none'", ["script-src"]),
        ("style-src 'none'; img-src 'none'", []),
        ("default-src *; default-src 'none'", []),
    ],
)
def test_a_policy_that_forbids_the_comments_is_found(
    check: Check, policy: str, directives: list[str]
) -> None:
    found = check(SOUND, Content_Security_Policy=policy)
    assert found == [Finding(Fault.POLICY, each) for each in directives]


def test_a_nonce_on_the_script_replaces_its_host(check: Check) -> None:
    policy = "script-src 'nonce-abc' 'strict-dynamic'; connect-src *"
    signed = SOUND.replace("<script ", '<script nonce="abc" ')
    assert check(signed, Content_Security_Policy=policy) == []


def test_a_page_that_readers_cannot_open_is_found(check: Check) -> None:
    assert check(SOUND, 404) == [Finding(Fault.STATUS, "404")]
    assert check(SOUND, 304) == [Finding(Fault.STATUS, "304")]


def test_redirects_are_followed_only_to_pages_of_the_site(
    check: Check, page: loopback_servers.Receiver, origin: str
) -> None:
    page.heard.clear()
    assert check("", 302, Location="/loop") == [Finding(Fault.UNREACHABLE, f"{origin}/loop")]
    assert [each.path for each in page.heard] == ["/post", "/loop", "/loop"]
    for where in ("https://169.254.169.254/", "//www.blog.example/", "http://blog.example/"):
        (found,) = check("", 301, Location=where)
        assert found.fault is Fault.ELSEWHERE
    assert len(page.heard) == 6


@pytest.mark.parametrize(
    "typed",
    ["https://evil.example/", "http://blog.example/", "blog.example:1", "www.blog.example/post"],
)
def test_only_pages_of_the_site_are_requested(
    site: records.Site, origin: str, page: loopback_servers.Receiver, typed: str
) -> None:
    page.heard.clear()
    own = msgspec.structs.replace(site, origins=("https://blog.example",))
    (found,) = page_check.findings(typed, own, SERVICE)
    assert found.fault is Fault.ELSEWHERE
    assert page.heard == []


@pytest.mark.parametrize(
    "typed", ["//evil.example/", "https://blog.example@evil.example/", "", "javascript:alert(1)"]
)
def test_what_is_no_address_is_refused(
    site: records.Site, origin: str, page: loopback_servers.Receiver, typed: str
) -> None:
    page.heard.clear()
    with pytest.raises(errors.BadInput) as refused:
        page_check.findings(typed, site, SERVICE)
    assert (refused.value.field, refused.value.code) == ("page", "not-a-url")
    assert page.heard == []


@pytest.mark.parametrize(
    ("where", "fault"),
    [
        ("http://blog.example", Fault.UNSAFE),
        ("https://localhost:1313", Fault.UNSAFE),
        ("https://10.0.0.1", Fault.UNSAFE),
        ("https://blog.example:22", Fault.UNSAFE),
        ("https://nowhere.example", Fault.UNREACHABLE),
    ],
)
def test_addresses_that_the_service_must_not_open_are_not_opened(
    store: connection.Store, site: records.Site, where: str, fault: Fault
) -> None:
    def resolve(host: str) -> list[str]:
        return [] if host == "nowhere.example" else ["10.0.0.1"]

    page_check.OUTBOUND.put(store, loopback_servers.client(resolver=resolve))
    own = msgspec.structs.replace(site, origins=(where,))
    assert [each.fault for each in page_check.findings(where, own, SERVICE)] == [fault]
