"""Thread ids: one canonical form for each name of a thread.

A thread is named either by an explicit id, which is used as the site gives it, or by a page URL,
which is reduced to the parts that identify the page. Two rules decide every case: the canonical
form is idempotent, and two names that might denote different pages never become the same id. A name
that can be interpreted in more than one way is refused, but every address at which a browser shows
a page has an id.

The canonical form of a page URL is ASCII:

    HTTPS://Blog.Example:443/a/../%7Ebob/caf%c3%a9/?utm=1&p=2#top
       ->   blog.example/~bob/caf%C3%A9?p=2     (for a site that allows the query key "p")

- The host is in lower case, with IDNA applied as in browsers. The scheme's default port is dropped;
  other ports are kept.
- In the path, dot segments are resolved. Path and query are percent-encoded in one form
  (`percent_encoding`).
- Only the site's query keys are kept, and they are sorted. The scheme and the fragment are dropped.
- Trailing slashes are dropped unless the site keeps them. The root is always `/`.
- If the site says so, `www.` before the host and `/amp` at the end of the path are dropped.

A change of these settings gives pages other ids; `page_rules` moves their threads.

Thread ids are stored, so changing this form would separate every page from its comments.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypedDict

from comments import errors
from comments.domain.text.addresses import host_names, percent_encoding

# The API promises this limit. In practice, the paths that browsers and servers accept are shorter.
MAX_BYTES = 2_000
MAX_QUERY_KEYS = 20
MAX_QUERY_KEY = 100  # In characters

_URL = re.compile(r"(?i:(https?)://)([^/?#]+)([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.DOTALL)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@%]+)(?::([0-9]{0,6}))?")
_HOST_END = re.compile("[/?#]")
_FILES = (".asp", ".aspx", ".htm", ".html", ".jsp", ".php", ".shtml", ".xhtml")
# Control characters and lone surrogates, which no browser sends.
_UNREADABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# Blanks, and the characters that end a key in a query. A text that contains one of these is several
# keys, or a key with a value.
_NO_KEY = re.compile(r"[\s&=#?]")
_WWW = re.compile(r"(?:www\.)+(?=[^.:]+\.)")
_AMP = re.compile("(?:/+amp)+(?=/?$)")
# The settings of `SiteRules` that decide which addresses lead to the same page.
RULES = ("query_keys", "keep_trailing_slash", "ignore_www", "ignore_amp")


class RuleFlags(TypedDict, total=False):
    """The rules of a site that are on or off."""

    keep_trailing_slash: bool
    ignore_www: bool
    ignore_amp: bool


class SiteRules(Protocol):
    """The settings by which a site identifies its pages; `records.Site` provides them."""

    @property
    def origins(self) -> tuple[str, ...]:
        """Return the origins of the site's pages, the main one first."""

    @property
    def query_keys(self) -> tuple[str, ...]:
        """Return the query keys that are part of a page's name."""

    @property
    def keep_trailing_slash(self) -> bool:
        """Return whether `/a` and `/a/` are two pages."""

    @property
    def ignore_www(self) -> bool:
        """Return whether a host with and without `www.` has the same pages."""

    @property
    def ignore_amp(self) -> bool:
        """Return whether `/a` and `/a/amp` are the same page."""


def canonical_id(raw: str) -> str:
    """Return the canonical form of an explicit id: the same id in NFC.

    Percent sequences are not decoded, because the view has already decoded the encoding for
    transport.

    Raises:
        errors.BadInput: the id is blank, is longer than 2,000 bytes, or contains control
            characters, lone surrogates or U+FFFD, the trace of an incorrectly decoded id.
    """
    _refuse_lossy("thread", raw)
    text = unicodedata.normalize("NFC", raw)
    if not text.strip():
        raise errors.BadInput("thread", "required")
    _refuse_long("thread", text)
    return text


def page_id(link: str, site: SiteRules) -> str:
    """Return the canonical id of the page of a site to which a link leads.

    Raises:
        errors.BadInput: `canonical_page` refuses the address.
    """
    return canonical_page(absolute(link, site.origins), **rules_of(site))


def rules_of(site: SiteRules) -> dict[str, Any]:
    """Return a site's `RULES`, by name."""
    return {name: getattr(site, name) for name in RULES}


def is_replaced(page: str, site: SiteRules) -> bool:
    """Return whether the page with this id now has another id, by the rules of the site."""
    try:
        named = canonical_page(
            f"https://{page}", query_keys=site.query_keys, keep_trailing_slash=True
        )
        return named == page != page_id(f"https://{page}", site)
    except errors.BadInput:
        return False


def absolute(link: str, origins: Sequence[str]) -> str:
    """Return the address of a link: `/path` is on the first origin, `//host/path` gets its scheme.

    A path may begin with two slashes: in `//name`, the name is a host only if it looks like one.
    Other links stay as they are.
    """
    if not link.startswith("/") or not origins:
        return link
    is_path = not link.startswith("//") or not has_host(link[2:], origins)
    return (origins[0] if is_path else origins[0].partition("//")[0]) + link


def has_host(address: str, origins: Sequence[str] = ()) -> bool:
    """Tell whether an address without a scheme begins with a host, and not with a folder or file.

    A host is the host of an origin, `localhost`, an IPv6 address, or a name with a dot that is not
    the name of a file (`index.html`).
    """
    host = _HOST_END.split(address, maxsplit=1)[0].lower()
    name = host.partition(":")[0]
    is_own = any(host == origin.partition("://")[2] for origin in origins)
    is_name = "." in name and not name.endswith(_FILES)
    return is_own or is_name or name.startswith("[") or name == "localhost"


def canonical_page(
    url: str,
    *,
    query_keys: Iterable[str] = (),
    keep_trailing_slash: bool = False,
    ignore_www: bool = False,
    ignore_amp: bool = False,
) -> str:
    """Return the canonical id of a page: host, path and the given query keys.

    Raises:
        errors.BadInput: the URL is not absolute http(s) with a host that browsers accept, has user
            information, backslashes, unencoded control characters or lone surrogates, or has an
            unencoded U+FFFD in the parts that identify the page.
    """
    _refuse_unreadable("page", url)
    match = _URL.fullmatch(url)
    if match is None or url != url.strip(" "):
        raise errors.BadInput("page", "not-a-url")
    scheme, authority, path, query = match.groups()
    _refuse_lossy("page", authority + path)
    if "\\" in authority + path:
        raise errors.BadInput("page", "has-backslash")
    host = _host(scheme.lower(), authority)
    path = _path(path, keep_trailing_slash=keep_trailing_slash)
    if ignore_www:
        host = _WWW.sub("", host, count=1) if host.startswith("www.") else host
    if ignore_amp:
        path = _AMP.sub("", path) or "/"
    result = host + path + _query(query or "", frozenset(query_keys))
    _refuse_long("page", result)
    return result


def checked_query_keys(given: Iterable[str]) -> tuple[str, ...]:
    """Return the query keys that identify a site's pages, without duplicates.

    Raises:
        errors.BadInput: a key is empty, is longer than `MAX_QUERY_KEY` or cannot be a query key, or
            there are more than `MAX_QUERY_KEYS`.
    """
    keys = tuple(dict.fromkeys(given))
    if len(keys) > MAX_QUERY_KEYS:
        raise errors.BadInput("query_keys", "too-many-items", limit=MAX_QUERY_KEYS)
    for key in keys:
        _refuse_lossy("query_keys", key)
        if len(key) > MAX_QUERY_KEY:
            raise errors.BadInput("query_keys", "item-too-long", limit=MAX_QUERY_KEY)
        if not key or _NO_KEY.search(key):
            raise errors.BadInput("query_keys", "bad-query-key", value=key)
    return keys


def page_url(url: str, thread: str, rules: SiteRules) -> str:
    """Return a page's URL as the thread shows it: valid, and without the fragment.

    If the thread is named by its page, the query contains only the keys that identify the site's
    pages. The other keys belong to the visitor who sent the URL, and may be secret.

    Raises:
        errors.BadInput: `canonical_page` refuses `url`.
    """
    try:
        page = canonical_page(url, **rules_of(rules))
        shown = percent_encoding.valid(url.partition("#")[0])
        if page != thread:
            return shown
        return shown.partition("?")[0] + page[len(page.partition("?")[0]) :]
    except errors.BadInput as error:
        raise error.about("url") from error


def _refuse_unreadable(field: str, text: str) -> None:
    if _UNREADABLE.search(text):
        raise errors.BadInput(field, "bad-characters")


def _refuse_lossy(field: str, text: str) -> None:
    """Also refuse U+FFFD, because different texts become the same if decoded incorrectly."""
    _refuse_unreadable(field, text)
    if "\ufffd" in text:
        raise errors.BadInput(field, "bad-characters")


def _refuse_long(field: str, text: str) -> None:
    if len(text.encode()) > MAX_BYTES:
        raise errors.BadInput(field, "too-many-bytes", limit=MAX_BYTES)


def _host(scheme: str, authority: str) -> str:
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        raise errors.BadInput("page", "bad-host")
    name, port = match.groups()
    number = host_names.port(scheme, port or "", "page")
    suffix = "" if number == host_names.USUAL_PORTS[scheme] else f":{number}"
    return host_names.canonical(name, "page") + suffix


def _path(raw: str, *, keep_trailing_slash: bool) -> str:
    path = _resolve_dots(percent_encoding.canonical(raw, percent_encoding.RAW_IN_PATH) or "/")
    if not keep_trailing_slash:
        path = path.rstrip("/")
    return path or "/"


def _resolve_dots(path: str) -> str:
    """Resolve `.` and `..` as browsers do: never above the root, and with empty segments kept."""
    out: list[str] = []
    segments = path.split("/")[1:]
    for place, segment in enumerate(segments):
        if segment == ".." and out:
            out.pop()
        if segment not in {".", ".."}:
            out.append(segment)
        elif place == len(segments) - 1:
            out.append("")
    return "/" + "/".join(out)


def _query(raw: str, keys: frozenset[str]) -> str:
    """Return the parts of a query that have an allowed key, sorted by key.

    Parts with the same key keep their order.
    """
    allowed = {
        percent_encoding.canonical(
            percent_encoding.encode(key, percent_encoding.UNRESERVED), percent_encoding.RAW_IN_QUERY
        )
        for key in keys
    }
    parts = raw.split("&") if allowed else []
    keyed = [
        (percent_encoding.canonical(part.partition("=")[0], percent_encoding.RAW_IN_QUERY), part)
        for part in parts
    ]
    kept = sorted((pair for pair in keyed if pair[0] in allowed), key=lambda pair: pair[0])
    parts = [key + _query_value(part) for key, part in kept]
    return "?" + "&".join(parts) if parts else ""


def _query_value(part: str) -> str:
    # The value is normalized separately from its key, because NFC would join a combining mark at
    # its start to the "=" before it.
    _, sign, value = part.partition("=")
    _refuse_lossy("page", value)
    return sign + percent_encoding.canonical(value, percent_encoding.RAW_IN_QUERY)
