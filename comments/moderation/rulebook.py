"""How a site is moderated: its policy, rules, bans and advisers, with a copy in the process.

Owns the kind Rulebook: one row for each site, so that a post which finds the copy young reads
nothing, and one read renews it. Copies are at most `_TERM` seconds old: a change holds everywhere
within a minute, and at once in the process that made it.

    Rulebook  key: site id; `content` is JSON: policy, days, reports, rules, bans, advisers

Advisers' secrets are sealed before they come here.
"""

from collections.abc import Callable
from datetime import datetime

import msgspec

from comments import errors
from comments.domain import classifier_verdicts
from comments.domain.crypto import caller_marks
from comments.domain.records import Policy
from comments.moderation.rules import Rule, check, patterns
from comments.store import caches, ownership, per_process, reads
from comments.store.models import moderation_rows

_OWNER = "rulebook"
_TERM = 60.0  # seconds that a copy is used
_MOST_COPIES = 10_000  # sites
MOST_RULES = 100
MOST_PATTERNS = 1_000  # of all rules together: the worst text takes some 40 ms
MOST_BANS = 2_000
_LARGEST = 900_000  # bytes; an entity holds a little more
LONGEST = 10_000  # days, and reports


class Known(msgspec.Struct, frozen=True, omit_defaults=True):
    """By what a ban knows an author again, beside the id.

    `comment` is the one that led to the ban. `network` and `mailbox` are marks (`caller_marks`):
    the network keeps people away until `network_until`, the mailbox as long as the ban stands.
    """

    comment: str = ""
    network: str = ""
    network_until: datetime | None = None
    mailbox: str = ""


class Ban(msgspec.Struct, frozen=True, omit_defaults=True):
    """Somebody who may not write on a site, until a moment or for good.

    `is_shadow`: they may, and nobody else sees it. `known` matches the author under another id.
    """

    author: str
    until: datetime | None = None
    is_shadow: bool = False
    known: Known = Known()

    def stands(self, now: datetime) -> bool:
        """Whether it is not over."""
        return self.until is None or now < self.until

    def meets(self, marks: caller_marks.Marks, now: datetime) -> bool:
        """Whether somebody with these marks is kept away, who may have another id."""
        known = self.known
        if known.mailbox and known.mailbox in marks.mailboxes:
            return True
        return known.network in marks.networks and not self.is_to_prune(now)

    def is_to_prune(self, now: datetime) -> bool:
        """Whether it holds the mark of a network whose days are over."""
        until = self.known.network_until
        return bool(self.known.network) and (until is None or now >= until)


class Book(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a site is moderated. `close_after` days a thread takes no more comments; 0 for never.

    A comment that so many readers report (`reports`) is held; 0 for none.
    """

    policy: Policy = Policy.OFF
    close_after: int = 0
    reports: int = 3
    rules: tuple[Rule, ...] = ()
    bans: tuple[Ban, ...] = ()
    advisers: tuple[classifier_verdicts.Classifier, ...] = ()

    def adviser(self, name: str) -> classifier_verdicts.Classifier | None:
        """The adviser of this name, if the site asks one."""
        return next((each for each in self.advisers if each.name == name), None)

    def ban_of(self, author: str, now: datetime) -> Ban | None:
        """The ban of an author, if one stands."""
        found = (ban for ban in self.bans if ban.author == author and ban.stands(now))
        return next(found, None) if author else None

    def ban_meeting(self, marks: caller_marks.Marks, now: datetime) -> Ban | None:
        """Return the ban that matches these marks, the strictest if there are several."""
        found = [ban for ban in self.bans if ban.stands(now) and ban.meets(marks, now)]
        return min(found, key=lambda ban: ban.is_shadow, default=None)

    def is_to_prune(self, now: datetime) -> bool:
        """Whether a ban holds a mark that is over."""
        return any(ban.is_to_prune(now) for ban in self.bans)

    @property
    def has_mailboxes(self) -> bool:
        """Whether a ban holds the mark of a mailbox."""
        return any(ban.known.mailbox for ban in self.bans)

    def asks(self, condition: str) -> bool:
        """Whether a rule that is on has a condition which takes a read to answer."""
        return any(rule.is_on and getattr(rule, condition) is not None for rule in self.rules)


COPIES = per_process.PerProcess(lambda: caches.Cache[str, Book](_MOST_COPIES, _TERM))


def get(site: str) -> Book:
    """How a site is moderated, perhaps a minute ago. Ask for sites that exist only."""
    copies = COPIES.get()
    book = copies.get(site)
    if book is None:
        drops = copies.drops
        book = read(site)
        copies.keep(site, book, drops=drops)
    return book


def read(site: str) -> Book:
    """How a site is moderated now."""
    row = reads.get(moderation_rows.rulebook_key(site))
    return Book() if row is None else msgspec.json.decode(row.content, type=Book)


def changed(
    site: str, change: Callable[[Book], Book], *, now: datetime
) -> tuple[Book, Book, ownership.Writes]:
    """Change how a site is moderated, in a transaction: before, after, and the row.

    Bans that are over are left out, and marks of networks whose days are. Call `forget` after the
    commit.

    Raises:
        errors.BadInput: the site would have more, or larger, than is read well.
    """
    before = read(site)
    book = change(before)
    if not 0 <= book.close_after <= LONGEST:
        raise errors.BadInput("close_after", f"is 0 to {LONGEST}")
    if not 0 <= book.reports <= LONGEST:
        raise errors.BadInput("reports", f"is 0 to {LONGEST}")
    if len(book.rules) > MOST_RULES:
        raise errors.BadInput("rules", f"more than {MOST_RULES}")
    for rule in book.rules:
        check(rule)
    if sum(map(patterns, book.rules)) > MOST_PATTERNS:
        raise errors.BadInput("rules", f"more than {MOST_PATTERNS} patterns together")
    bans = tuple(_pruned(ban, now) for ban in book.bans if ban.stands(now))
    if len(bans) > MOST_BANS:
        raise errors.BadInput("bans", f"more than {MOST_BANS}")
    book = msgspec.structs.replace(book, bans=bans)
    content = msgspec.json.encode(book).decode()
    if len(content.encode()) > _LARGEST:
        raise errors.BadInput("rules", f"longer than {_LARGEST} bytes together")
    row = moderation_rows.Rulebook(key=moderation_rows.rulebook_key(site), content=content)
    return before, book, ownership.Writes(_OWNER, put=(row,))


def _pruned(ban: Ban, now: datetime) -> Ban:
    if not ban.is_to_prune(now):
        return ban
    return msgspec.structs.replace(ban, known=msgspec.structs.replace(ban.known, network=""))


def forget(site: str) -> None:
    """Let this process read a site's rulebook anew."""
    COPIES.get().drop(site)
