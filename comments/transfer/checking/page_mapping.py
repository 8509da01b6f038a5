"""Map the addresses of pages in an export to their new addresses (pure).

A mapping is a text `OLD=NEW`, as operators write it:

    old.example=blog.example                         all pages of a host
    /blog=/posts                                     all pages below a path, on every host
    old.example/blog=blog.example/articles           all pages of a host below a path
    old.example/?p=7=https://blog.example/roses      one page, because an address has a query
    /blog/*.html=/posts/*/                           a pattern: * stands for text without a slash

Addresses are compared in their canonical form (`thread_ids`), so the scheme, letter case and
percent-encoding make no difference.

A path matches whole segments: `/blog` matches `/blog` and `/blog/a`, but not `/blogger`. The
longest matching mapping applies. A mapping of one page counts as longer than any pattern, and a
pattern counts as longer than a mapping of any path. Each side of a pattern has one `*`. Of two
mappings of the same path, the one that names the host applies. If the host alone has a mapping too,
that mapping determines the new host, except where the mapping of the path names a new host itself.
The result of a mapping is not mapped again, and the order of the mappings makes no difference.
"""

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote

from comments import errors
from comments.domain.ids import thread_ids
from comments.domain.languages import error_texts
from comments.domain.text import cleaning

MOST = 1_000  # Maximum number of mappings.
# The maximum total number of characters of all mappings; the journal stores them in one row.
LONGEST = 200_000
_ANY = "*"  # In a pattern
_ANY_HOST = "any-host.invalid"
_SCHEMES = ("http://", "https://")
_SHOWN = 200  # Maximum number of characters of a mapping in an error message.


class _Place(NamedTuple):
    """A host ("" for every host), a path, and a query (empty unless the place is a single page)."""

    host: str
    path: str
    query: str = ""
    scheme: str = ""

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.rstrip("/").split("/")[1:])

    @property
    def plain_path(self) -> str:
        """Return the path without slashes at its ends."""
        return "/".join(self.segments)


class _Rule(NamedTuple):
    text: str
    old: _Place
    new: _Place

    @property
    def is_of_one_page(self) -> bool:
        return bool(self.old.query or self.new.query)

    @property
    def is_pattern(self) -> bool:
        return _ANY in self.old.path

    @property
    def is_of_host(self) -> bool:
        """Return whether the rule changes only the host."""
        return not self.old.segments and not self.new.segments and bool(self.old.host)


class MappedPage(NamedTuple):
    """The address of a page, and the mappings that changed it."""

    url: str
    by: tuple[str, ...] = ()


class PageMapping:
    """All mappings of one import."""

    def __init__(self, given: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        """Parse mappings. A page that moves to one of `origins` gets the scheme of that origin.

        Raises:
            errors.ImportRefused: a mapping is invalid, or two mappings contradict each other.
        """
        self.texts = tuple(dict.fromkeys(given))
        if len(self.texts) > MOST:
            raise errors.ImportRefused(f"There are more than {MOST:,} mappings.")
        if sum(map(len, self.texts)) > LONGEST:
            raise errors.ImportRefused(f"The mappings have more than {LONGEST:,} characters.")
        self._schemes = {
            address: scheme
            for scheme, _, address in (origin.partition("://") for origin in origins)
        }
        self._prefixes: dict[tuple[str, tuple[str, ...]], _Rule] = {}
        self._pages: dict[tuple[str, ...], dict[tuple[str, str, str], _Rule]] = {}
        self._patterns: dict[tuple[str, str], _Rule] = {}  # By host and path, the longest first
        for text in self.texts:
            self._add(_parse(text))
        self._patterns = dict(
            sorted(self._patterns.items(), key=lambda item: (-len(item[0][1]), not item[0][0]))
        )

    def _add(self, rule: _Rule) -> None:
        old = rule.old
        if rule.is_of_one_page:
            pages = self._pages.setdefault(_keys(old.query), {})
            other = pages.setdefault((old.host, old.plain_path, old.query), rule)
        elif rule.is_pattern:
            other = self._patterns.setdefault((old.host, old.plain_path), rule)
        else:
            other = self._prefixes.setdefault((old.host, old.segments), rule)
        if other is not rule:
            raise errors.ImportRefused(
                f"The mappings {_quote(rule.text)} and {_quote(other.text)} map the same pages. "
                "Remove one of them."
            )

    def apply(self, url: str) -> MappedPage:
        """Return the new address of a page. An address without a mapping does not change."""
        if not self.texts:
            return MappedPage(url)
        try:
            place = _place(url, query_keys=())
        except errors.BadInput:
            return MappedPage(url)
        rule = self._rule_of_page(url, place)
        if rule is not None:
            return self._mapped_page(url, place, rule.new, rule)
        of_host, of_path = self._rule_of_host(place), self._rule_of_path(place)
        of_path = self._pattern(place) or of_path
        if of_host is None and of_path is None:
            return MappedPage(url)
        query = url.partition("#")[0].partition("?")[2]
        new = place._replace(query=query)
        if of_host is not None:
            new = new._replace(host=of_host.new.host, scheme=of_host.new.scheme)
        if of_path is not None:
            new = new._replace(path=_rebase(place.path, of_path))
        if of_path is not None and of_path.new.host:
            new = new._replace(host=of_path.new.host, scheme=of_path.new.scheme)
        return self._mapped_page(url, place, new, of_host, of_path)

    def website(self, url: str) -> str:
        """Return the new address of a page in the form to display; "" if it cannot be displayed."""
        try:
            return cleaning.clean_website(self.apply(url).url)
        except errors.BadInput:
            return ""

    def _rule_of_page(self, url: str, place: _Place) -> _Rule | None:
        """Return the rule of exactly this page, preferring rules with more query keys."""
        for keys in sorted(self._pages, key=len, reverse=True):
            query = _place(url, query_keys=keys).query
            for host in (place.host, ""):
                rule = self._pages[keys].get((host, place.plain_path, query))
                if rule is not None:
                    return rule
        return None

    def _rule_of_host(self, place: _Place) -> _Rule | None:
        rule = self._prefixes.get((place.host, ()))
        return rule if rule is not None and rule.is_of_host else None

    def _pattern(self, place: _Place) -> _Rule | None:
        """Return the longest pattern that matches this page."""
        for (host, path), rule in self._patterns.items():
            if host in {"", place.host} and _text_in_pattern(path, place.plain_path) is not None:
                return rule
        return None

    def _rule_of_path(self, place: _Place) -> _Rule | None:
        """Return the rule with the longest path that contains this page."""
        segments = place.segments
        for length in range(len(segments), -1, -1):
            for host in (place.host, ""):
                rule = self._prefixes.get((host, segments[:length]))
                if rule is not None and not rule.is_of_host:
                    return rule
        return None

    def _mapped_page(self, url: str, old: _Place, new: _Place, *rules: _Rule | None) -> MappedPage:
        host = new.host or old.host
        scheme = new.scheme or url.partition("://")[0].lower()
        if host != old.host or new.scheme:
            scheme = self._schemes.get(host, scheme)
        mapped = f"{scheme}://{host}{new.path}{'?' if new.query else ''}{new.query}"
        return MappedPage(mapped, tuple(rule.text for rule in rules if rule is not None))


def _parse(text: str) -> _Rule:
    """Parse one mapping.

    A query can contain `=` too, so the function tries each `=` and checks both sides.
    """
    pieces = text.split("=")
    if len(pieces) == 1:
        raise _refusal(text, "it has no =. Write OLD=NEW, such as old.example=blog.example")
    candidates: list[_Rule] = []
    reason = ""
    for number in range(1, len(pieces)):
        old, new = "=".join(pieces[:number]), "=".join(pieces[number:])
        try:
            candidates.append(_Rule(text, _side(old), _side(new)))
        except errors.ImportRefused as error:
            reason = reason or error.message
    if len(candidates) > 1:
        candidates = [candidate for candidate in candidates if _is_plain(candidate, text)]
        reason = "more than one = can be the middle. Begin the new address with https://"
    if len(candidates) != 1:
        raise _refusal(text, reason)
    (rule,) = candidates
    _check(rule)
    return rule


def _is_plain(rule: _Rule, text: str) -> bool:
    """Return whether the new side begins with a scheme, or is a path that follows an old path."""
    return bool(rule.new.scheme) or (not rule.new.host and text.startswith("/"))


def _check(rule: _Rule) -> None:
    if rule.old.host and not rule.new.host:
        raise _refusal(
            rule.text, "the old address names a host, but the new one does not. Add the new host"
        )
    stars = rule.old.path.count(_ANY), rule.new.path.count(_ANY)
    if any(stars) and (stars != (1, 1) or rule.is_of_one_page):
        raise _refusal(rule.text, "a pattern has exactly one * on each side, and no query")
    if rule.old[:3] == rule.new[:3]:
        raise _refusal(rule.text, "both addresses are the same page")


def _side(text: str) -> _Place:
    """Parse the old or the new address of a mapping.

    Raises:
        errors.ImportRefused: the text is not an address; the error contains only the reason.
    """
    if text.startswith("//") and thread_ids.has_host(text[2:]):
        text = text[2:]
    is_path = text.startswith("/")
    scheme = next((prefix for prefix in _SCHEMES if text.lower().startswith(prefix)), "")
    if not is_path and not scheme and not thread_ids.has_host(text):
        raise errors.ImportRefused(
            f"{_quote(text)} is neither a host, a path nor an address. Begin a path with /"
        )
    if "#" in text:
        raise errors.ImportRefused(f"remove the # and what follows from {_quote(text)}")
    url = f"https://{_ANY_HOST}{text}" if is_path else text if scheme else f"https://{text}"
    try:
        place = _place(url, query_keys=_keys(text.partition("?")[2]))
    except errors.BadInput as error:
        problem = error_texts.sentence(error)
        raise errors.ImportRefused(f"{_quote(text)} is not an address: {problem}") from error
    if is_path:
        return place._replace(host="")
    return place._replace(scheme=scheme.removesuffix("://"))


def _place(url: str, *, query_keys: Iterable[str]) -> _Place:
    page = thread_ids.canonical_page(url, query_keys=query_keys, keep_trailing_slash=True)
    address, _, query = page.partition("?")
    host, _, path = address.partition("/")
    return _Place(host, f"/{path}", query)


def _keys(query: str) -> tuple[str, ...]:
    """Return the keys of a query, sorted."""
    keys = (part.partition("=")[0] for part in query.split("&"))
    names = {unquote(key, errors="surrogateescape") for key in keys}
    return tuple(sorted(names - {""}))


def _text_in_pattern(pattern: str, path: str) -> str | None:
    """Return the text for which the `*` of a pattern stands in a path, or None."""
    first, _, last = pattern.partition(_ANY)
    if len(path) <= len(first) + len(last) or not (path.startswith(first) and path.endswith(last)):
        return None
    text = path[len(first) : len(path) - len(last)]
    return None if "/" in text else text


def _rebase(path: str, rule: _Rule) -> str:
    """Return a path with the rule's new path in place of the old one.

    The path of exactly the old page becomes exactly the new path, with or without a slash at its
    end.
    """
    if rule.is_pattern:
        text = _text_in_pattern(rule.old.plain_path, _Place("", path).plain_path)
        return rule.new.path.replace(_ANY, text or "")
    if path == rule.old.path:
        return rule.new.path
    rest = path[len(rule.old.path.rstrip("/")) :]
    return (rule.new.path.rstrip("/") + rest) or "/"


def _refusal(text: str, reason: str) -> errors.ImportRefused:
    return errors.ImportRefused(
        f"The mapping {_quote(text)} is not valid: {reason.removesuffix('.')}."
    )


def _quote(text: str) -> str:
    shown = "".join(c if c.isprintable() else "\ufffd" for c in text[:_SHOWN])
    return f"'{shown}'"
