"""Find out why a page of a website does not show its comments.

The service requests the page once, through `safe_http` and without cookies, as an anonymous reader
would. It then looks for what the widget needs: the script, the element, and a content security
policy that allows both. The check reads the HTML that the server sends, without anything that
scripts insert later.

The service requests only addresses whose origin the site lists, even after a redirect.
"""

import html.parser
from collections.abc import Iterator, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

from comments import errors
from comments.domain import records
from comments.domain.text.addresses import web_origins
from comments.events import safe_http
from comments.limits import rate_limits
from comments.store.memory import per_process

# Maximum number of checks of a site.
LIMIT = rate_limits.Limit("page check", 30, timedelta(minutes=10))
OUTBOUND = per_process.PerProcess(
    lambda: safe_http.HttpClient(safe_http.RequestLimits(answer=1024 * 1024))
)
_MOST_REDIRECTS = 3
_REDIRECTS, _ERRORS = 300, 400
# The directives that can block the widget's script and its calls to the API. Of each list,
# the first directive that a policy contains counts.
_SCRIPTS = ("script-src-elem", "script-src", "default-src")
_CALLS = ("connect-src", "default-src")
_SCRIPT = "/widget/flatthread.js"
_HEADERS = {"Accept": "text/html", "User-Agent": "Flatthread (page check)"}


class Fault(StrEnum):
    """The faults that a check of a page can find."""

    UNSAFE = "unsafe"  # The service does not open this address.
    UNREACHABLE = "unreachable"
    STATUS = "status"
    ELSEWHERE = "elsewhere"  # The page, or one to which it redirects, does not belong to the site.
    NO_SCRIPT = "no-script"
    MIXED = "mixed"  # A page that was loaded over HTTPS loads the script over HTTP.
    OTHER_SERVICE = "other-service"
    OTHER_SITE = "other-site"
    NO_ELEMENT = "no-element"
    POLICY = "policy"  # The content security policy forbids the script or the API.


class Finding(NamedTuple):
    """A fault, with the value that causes it, such as a status, an address or a directive."""

    fault: Fault
    value: str = ""


class _Page(NamedTuple):
    """A page as it was received, or the fault that prevented this."""

    url: str
    text: str = ""
    policies: Sequence[str] = ()
    fault: Finding | None = None


def findings(url: str, site: records.Site, service: str) -> list[Finding]:
    """Request a page, and return its faults.

    `service` is the address of this service that the page's script should contain.

    Raises:
        errors.BadInput: the text is not a web address.
    """
    address = _address(url, site)
    if not _is_of(address, site):
        return [Finding(Fault.ELSEWHERE, address)]
    page = _request_page(address, site)
    return [page.fault] if page.fault else list(_faults(page, site, service))


def _address(text: str, site: records.Site) -> str:
    """Return the full address of a page, given an address that may lack the scheme or the host."""
    text = text.strip()
    if text.startswith("/") and not text.startswith("//") and site.origins:
        return site.origins[0] + text
    scheme = web_origins.of_address(text, "page").partition("://")[0]
    return text if "://" in text else f"{scheme}://{text}"


def _is_of(url: str, site: records.Site) -> bool:
    try:
        return web_origins.of_address(url) in site.origins
    except errors.BadInput:
        return False


def _request_page(url: str, site: records.Site) -> _Page:
    """Request a page, and follow redirects to pages of the site."""
    for _ in range(_MOST_REDIRECTS):
        try:
            answer = OUTBOUND.get().send("GET", url, headers=_HEADERS)
        except errors.UnsafeAddress:
            return _Page(url, fault=Finding(Fault.UNSAFE, url))
        except errors.Unreachable:
            return _Page(url, fault=Finding(Fault.UNREACHABLE, url))
        if answer.status < _REDIRECTS:
            # One header may have several policies.
            policies = answer.headers.get("content-security-policy", "").split(",")
            return _Page(url, answer.body.decode(errors="replace"), policies)
        where = answer.headers.get("location")
        if answer.status >= _ERRORS or not where:
            return _Page(url, fault=Finding(Fault.STATUS, str(answer.status)))
        url = urljoin(url, where)
        if not _is_of(url, site):
            return _Page(url, fault=Finding(Fault.ELSEWHERE, url))
    return _Page(url, fault=Finding(Fault.UNREACHABLE, url))


def _faults(page: _Page, site: records.Site, service: str) -> Iterator[Finding]:
    elements = _Elements()
    elements.feed(page.text)
    scripts = [
        script for script in elements.scripts if urlsplit(script["src"]).path.endswith(_SCRIPT)
    ]
    if not scripts:
        yield Finding(Fault.NO_SCRIPT)
    else:
        yield from _faults_of_script(scripts[0], elements, page, site, service)
    nonces = {script["nonce"] for script in scripts if script.get("nonce")}
    for policy in (*page.policies, *elements.policies):
        for directive in _forbidding_directives(policy, page.url, service, nonces):
            yield Finding(Fault.POLICY, directive)


def _faults_of_script(
    script: dict[str, str], found: "_Elements", page: _Page, site: records.Site, service: str
) -> Iterator[Finding]:
    source = urljoin(page.url, script["src"])
    if page.url.startswith("https:") and source.startswith("http:"):
        yield Finding(Fault.MIXED, source)
    elif source.partition("?")[0] != service + _SCRIPT:
        yield Finding(Fault.OTHER_SERVICE, source)
    if others := {script.get("data-site", ""), *found.sites} - {"", site.id, site.alias}:
        yield Finding(Fault.OTHER_SITE, min(others))
    if not found.has_element:
        yield Finding(Fault.NO_ELEMENT)


def _forbidding_directives(policy: str, page: str, service: str, nonces: set[str]) -> Iterator[str]:
    """Return the directives of a content security policy that forbid the script or the API."""
    directives: dict[str, list[str]] = {}
    for directive in policy.split(";"):
        name, *sources = directive.split() or [""]
        directives.setdefault(name.lower(), sources)
    for names, allowed in ((_SCRIPTS, nonces), (_CALLS, set())):
        name = next((option for option in names if option in directives), "")
        if name and not _allows(directives[name], page, service, allowed):
            yield names[-2] if name == "default-src" else name


def _allows(sources: Sequence[str], page: str, service: str, nonces: set[str]) -> bool:
    """Return whether the sources in a content security policy allow the service's script or API."""
    if any(f"'nonce-{nonce}'" in sources for nonce in nonces):
        return True
    if "'strict-dynamic'" in sources:  # Browsers then ignore all hosts.
        return False
    target, own = urlsplit(service), urlsplit(page)
    is_same = (own.scheme, own.netloc) == (target.scheme, target.netloc)
    return any(
        (is_same if source == "'self'" else _matches(source, target))
        for source in map(str.lower, sources)
    )


def _matches(source: str, target: SplitResult) -> bool:
    """Return whether a source names the scheme or the host of an address. Paths are ignored."""
    if source in {"*", f"{target.scheme}:"}:
        return True
    scheme, mark, rest = source.rpartition("://")
    host = rest.partition("/")[0]
    if mark and scheme not in {target.scheme, "http"}:
        return False
    is_below = host.startswith("*.") and target.netloc.endswith(host[1:])
    return is_below or host in {target.netloc, f"{target.netloc}:443", f"{target.netloc}:*"}


class _Elements(html.parser.HTMLParser):
    """The elements of a page that matter to the widget."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[dict[str, str]] = []
        self.policies: list[str] = []
        self.sites: set[str] = set()
        self.has_element = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an element."""
        values = {name: value or "" for name, value in attrs}
        if tag == "script" and values.get("src"):
            self.scripts.append(values)
        if tag == "meta" and values.get("http-equiv", "").lower() == "content-security-policy":
            self.policies.append(values.get("content", ""))
        if values.get("id") == "flatthread":
            self.has_element = True
            self.sites.add(values.get("data-site", ""))
