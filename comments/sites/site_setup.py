"""Track the progress of a website's setup, and which pages have requested its comments.

This module owns the kind SiteSetup: one row for each website, stored as JSON (`SiteSetup`). If a
site is older than this kind, its row is created, as a finished setup, when one of its pages is next
seen.

When a page requests comments, the browser sends the page's origin. If the site lists this origin,
the request shows that the site's snippet works. Other origins are stored so that the site's owner
can add them, but they get no access. Anybody can send any origin, so the amount of stored data is
limited.

An origin is recorded after the response to a page view is ready, and errors are ignored, so
recording never makes a page view fail. A process writes at most once a day for each site and
origin, and for at most `MOST_WRONG` unlisted origins of a site in an hour. For each site, only the
latest `MOST_WRONG` unlisted origins are stored.

A page may also declare another canonical address than its own, or answer at an address that its
thread has left. The last `MOST_DECLARED` of these addresses are stored, with the same limits
(`declared_moves`).
"""

import contextlib
import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import msgspec

from comments import errors
from comments.domain import decoders, records
from comments.domain.text.addresses import web_origins
from comments.store import connection, ownership, reads, transactions
from comments.store.memory import caches, per_process
from comments.store.models import comment_rows

# The origin that browsers send for a page without an origin, such as a file on a disk.
NO_ORIGIN = "null"
MOST_WRONG = 5
MOST_DECLARED = 20
_KEPT = timedelta(days=7)
_DAY, _HOUR = 86_400.0, 3_600.0  # Seconds
_LONGEST = 300  # Maximum number of characters in an origin.
_PATIENCE = 2.0  # Seconds
_log = logging.getLogger("flatthread")


class WrongOrigin(msgspec.Struct, frozen=True):
    """An unlisted origin, and when one of its pages last requested the comments."""

    origin: str
    seen: datetime


class DeclaredAddress(msgspec.Struct, frozen=True):
    """The address `new` that a page of the thread `old` declared, or at which it answered."""

    old: str
    new: str
    seen: datetime


class SiteSetup(msgspec.Struct, frozen=True):
    """The progress of a site's setup.

    `origin` is the first origin on which a page of the site was seen, and `first` is the time of
    that visit. `last` is the time of the last visit, and may be up to a day too early.
    """

    is_done: bool = False
    origin: str = ""
    first: datetime | None = None
    last: datetime | None = None
    wrong: tuple[WrongOrigin, ...] = ()
    declared: tuple[DeclaredAddress, ...] = ()

    def declared_since(self, now: datetime) -> list[DeclaredAddress]:
        """Return the recently declared addresses, newest first, one for each thread."""
        recent = (page for page in reversed(self.declared) if page.seen > now - _KEPT)
        return list(reversed({page.old: page for page in recent}.values()))

    def wrong_of(self, site: records.Site, *, now: datetime) -> list[WrongOrigin]:
        """Return the recently seen origins that the site still does not list."""
        since = now - _KEPT
        return [
            visit for visit in self.wrong if visit.seen > since and visit.origin not in site.origins
        ]


class _Noted:
    """What this process has noted: sites' origins, and each site's number of unlisted origins."""

    def __init__(self) -> None:
        self.origins = caches.Cache[tuple[str, str, bool], bool](10_000, _DAY)
        self.wrong = caches.Cache[str, int](10_000, _HOUR)
        self.declared = caches.Cache[tuple[str, str, str], bool](10_000, _DAY)
        self.declared_counts = caches.Cache[str, int](10_000, _HOUR)
        self.answers = caches.Cache[tuple[str, int, str], bool](10_000, _DAY)


_NOTED = per_process.PerProcess(_Noted)


def begin(site_id: str) -> None:
    """Begin the setup of a new website."""
    _change(site_id, lambda setup: setup or SiteSetup())


def finish(site_id: str) -> None:
    """Mark a website's setup as done."""
    _change(site_id, lambda setup: msgspec.structs.replace(setup or SiteSetup(), is_done=True))


def get(site_id: str) -> SiteSetup:
    """Return a website's setup."""
    return of([site_id]).get(site_id, SiteSetup(is_done=True))


def of(site_ids: Iterable[str]) -> dict[str, SiteSetup]:
    """Return the setups of these websites; websites without a setup are left out."""
    rows = reads.get_multi([comment_rows.site_setup_key(site_id) for site_id in site_ids])
    return {row.key.id(): _setup(row) for row in rows if row is not None}


def note(site: records.Site, origin: str, *, now: datetime) -> None:
    """Record that a page with this origin requested a website's comments."""
    noted, is_listed = _NOTED.get(), origin in site.origins
    if noted.origins.get((site.id, origin, is_listed)):
        return
    if not is_listed:
        count = noted.wrong.get(site.id) or 0
        if count >= MOST_WRONG or not _is_origin(origin):
            return
        noted.wrong.keep(site.id, count + 1)
    noted.origins.keep((site.id, origin, is_listed), value=True)
    add = _after_visit if is_listed else _wrongly_seen
    if not _try(site.id, lambda setup: add(setup, origin, now)):
        noted.origins.drop((site.id, origin, is_listed))


def note_declared(site_id: str, page: DeclaredAddress, is_possible: Callable[[], bool]) -> None:
    """Record that a page declared a canonical address, if the thread can move there."""
    noted, key = _NOTED.get(), (site_id, page.old, page.new)
    count = noted.declared_counts.get(site_id) or 0
    if noted.declared.get(key) or count >= MOST_DECLARED:
        return
    noted.declared_counts.keep(site_id, count + 1)
    noted.declared.keep(key, value=True)
    if is_possible():
        _try(site_id, lambda setup: _add_declared(setup, page))


def is_first_answer(site: records.Site, thread: str) -> bool:
    """Note that a page asked for a thread by this id; return whether it is the first one today.

    After each move of the site's threads, the next page counts as the first one again.
    """
    answers, key = _NOTED.get().answers, (site.id, site.moves, thread)
    if answers.get(key):
        return False
    answers.keep(key, value=True)
    return True


def _try(site_id: str, change: Callable[[SiteSetup], SiteSetup]) -> bool:
    """Change a setup on behalf of a page view, and return whether this succeeded in time."""
    try:
        with connection.within(_PATIENCE):
            _change(site_id, lambda setup: change(setup or SiteSetup(is_done=True)))
    except errors.FlatthreadError:
        _log.info("A page's address was not noted.", exc_info=True)
        return False
    return True


def _add_declared(setup: SiteSetup, page: DeclaredAddress) -> SiteSetup:
    key = page.old, page.new
    others = (other for other in setup.declared if (other.old, other.new) != key)
    return msgspec.structs.replace(setup, declared=(page, *others)[:MOST_DECLARED])


def _after_visit(setup: SiteSetup, origin: str, now: datetime) -> SiteSetup:
    if setup.last is not None and now - setup.last < timedelta(seconds=_DAY):
        return setup
    return msgspec.structs.replace(
        setup, origin=setup.origin or origin, first=setup.first or now, last=now
    )


def _wrongly_seen(setup: SiteSetup, origin: str, now: datetime) -> SiteSetup:
    others = (visit for visit in setup.wrong if visit.origin != origin and visit.seen > now - _KEPT)
    wrong = (WrongOrigin(origin, now), *others)[:MOST_WRONG]
    return msgspec.structs.replace(setup, wrong=wrong)


def _is_origin(origin: str) -> bool:
    """Return whether a browser could have sent this origin."""
    if len(origin) > _LONGEST:
        return False
    with contextlib.suppress(errors.BadInput):
        return origin == NO_ORIGIN or web_origins.check(origin) == origin
    return False


def _change(site_id: str, change: Callable[[SiteSetup | None], SiteSetup]) -> None:
    key = comment_rows.site_setup_key(site_id)

    def body() -> None:
        row = reads.get(key)
        before = None if row is None else _setup(row)
        after = change(before)
        if after != before:
            made = comment_rows.SiteSetupRow(key=key, content=msgspec.json.encode(after).decode())
            transactions.apply(ownership.Writes("site_setup", put=(made,)))

    transactions.transaction(body)


def _setup(row: comment_rows.SiteSetupRow) -> SiteSetup:
    return decoders.json(SiteSetup).decode(row.content)
