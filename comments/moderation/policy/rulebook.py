"""Store and cache a site's moderation settings: policy, rules, bans and classifiers.

This module owns the kind Rulebook, with one row for each site. Each process keeps a copy, so most
posts do not read the row. A change applies to every post that begins after the change: in all
processes of an embedded store, and within seconds on other stores (`store.row_copies`).

    Rulebook  key: site id; `content` is JSON: policy, days, reports, rules, bans, advisers

Classifiers are stored under the name `advisers`. Callers encrypt the classifiers' secrets before
they pass them in.
"""

from collections.abc import Callable
from datetime import datetime

import msgspec

from comments import errors
from comments.domain import decoders
from comments.domain.crypto import caller_marks
from comments.domain.moderation import classifier_verdicts
from comments.domain.records import Policy
from comments.moderation.policy.rules import Rule, check, count_patterns
from comments.store import ownership, reads
from comments.store.memory import per_process, row_copies
from comments.store.models import moderation_rows

_OWNER = "rulebook"
MOST_RULES = 100
MOST_PATTERNS = 1_000  # Patterns in all rules together; matching the worst text then takes 40 ms.
MOST_BANS = 2_000
_LARGEST = 900_000  # In bytes; Datastore's limit for an entity is slightly higher.
LONGEST = 10_000  # The maximum for `close_after` (days) and `reports`.


class BanMarks(msgspec.Struct, frozen=True, omit_defaults=True):
    """The marks that a ban matches in addition to the author id.

    `comment` is the comment that led to the ban. `network` and `mailbox` are caller marks
    (`caller_marks`). The network matches until `network_until`; the mailbox matches as long as the
    ban lasts.
    """

    comment: str = ""
    network: str = ""
    network_until: datetime | None = None
    mailbox: str = ""


class Ban(msgspec.Struct, frozen=True, omit_defaults=True):
    """A ban of an author from a site, until a given time or permanently.

    If `is_shadow` is set, the author can still post, but only the author sees the new comments.
    `known` contains marks that recognize the author even under a different id.
    """

    author: str
    until: datetime | None = None
    is_shadow: bool = False
    known: BanMarks = BanMarks()

    def is_active(self, now: datetime) -> bool:
        """Return whether the ban is in force."""
        return self.until is None or now < self.until

    def matches(self, marks: caller_marks.Marks, now: datetime) -> bool:
        """Return whether the ban applies to a caller with these marks, regardless of the id."""
        known = self.known
        if known.mailbox and known.mailbox in marks.mailboxes:
            return True
        return known.network in marks.networks and not self.is_to_prune(now)

    def is_to_prune(self, now: datetime) -> bool:
        """Return whether the ban still contains an expired network mark."""
        until = self.known.network_until
        return bool(self.known.network) and (until is None or now >= until)


class Rulebook(msgspec.Struct, frozen=True, omit_defaults=True):
    """A site's moderation settings.

    `close_after` is the number of days after which a thread closes; 0 means never. `reports` is the
    number of reports after which a comment is held; 0 means never.
    """

    policy: Policy = Policy.OFF
    close_after: int = 0
    reports: int = 3
    rules: tuple[Rule, ...] = ()
    bans: tuple[Ban, ...] = ()
    classifiers: tuple[classifier_verdicts.Classifier, ...] = msgspec.field(
        default=(),
        name="advisers",  # The name in stored rows
    )

    def classifier(self, name: str) -> classifier_verdicts.Classifier | None:
        """Return the classifier with this name; None if the site does not use it."""
        return next(
            (classifier for classifier in self.classifiers if classifier.name == name), None
        )

    def ban_of(self, author: str, now: datetime) -> Ban | None:
        """Return the active ban of an author id; None if there is none."""
        bans = (ban for ban in self.bans if ban.author == author and ban.is_active(now))
        return next(bans, None) if author else None

    def strictest_ban(self, marks: caller_marks.Marks, now: datetime) -> Ban | None:
        """Return the strictest active ban that matches these marks; None if there is none."""
        bans = [ban for ban in self.bans if ban.is_active(now) and ban.matches(marks, now)]
        return min(bans, key=lambda ban: ban.is_shadow, default=None)

    def is_to_prune(self, now: datetime) -> bool:
        """Return whether any ban contains an expired network mark."""
        return any(ban.is_to_prune(now) for ban in self.bans)

    @property
    def has_mailboxes(self) -> bool:
        """Return whether any ban contains a mailbox mark."""
        return any(ban.known.mailbox for ban in self.bans)

    def has_condition(self, condition: str) -> bool:
        """Return whether any enabled rule has the given condition."""
        return any(rule.is_on and getattr(rule, condition) is not None for rule in self.rules)


def for_pages(site: str) -> Rulebook:
    """Return a rulebook for a page. It is at most a second or, on other stores, a minute old.

    The site must exist.
    """
    return COPIES.get().get(site)


def current(site: str) -> Rulebook:
    """Return a site's rulebook for a decision about a text. The site must exist."""
    return COPIES.get().current(site)


def from_store(site: str) -> Rulebook:
    """Read a site's current rulebook from the store."""
    row = reads.get(moderation_rows.rulebook_key(site))
    return Rulebook() if row is None else decoders.json(Rulebook).decode(row.content)


COPIES = per_process.PerProcess(lambda: row_copies.RowCopies("Rulebook", from_store))


def change_writes(
    site: str, change: Callable[[Rulebook], Rulebook], *, now: datetime
) -> tuple[Rulebook, Rulebook, ownership.Writes]:
    """Change a site's rulebook in a transaction; return the old book, the new book and the writes.

    This function also removes expired bans and expired network marks. Call `forget` after the
    commit.

    Raises:
        errors.BadInput: a value is out of range, or the rulebook would be too large.
    """
    before = from_store(site)
    book = change(before)
    if not 0 <= book.close_after <= LONGEST:
        raise errors.BadInput("close_after", "out-of-range", minimum=0, maximum=LONGEST)
    if not 0 <= book.reports <= LONGEST:
        raise errors.BadInput("reports", "out-of-range", minimum=0, maximum=LONGEST)
    if len(book.rules) > MOST_RULES:
        raise errors.BadInput("rules", "too-many-items", limit=MOST_RULES)
    for rule in book.rules:
        check(rule)
    if sum(map(count_patterns, book.rules)) > MOST_PATTERNS:
        raise errors.BadInput("rules", "too-many-patterns", limit=MOST_PATTERNS)
    bans = tuple(_prune(ban, now) for ban in book.bans if ban.is_active(now))
    if len(bans) > MOST_BANS:
        raise errors.BadInput("bans", "too-many-items", limit=MOST_BANS)
    book = msgspec.structs.replace(book, bans=bans)
    content = msgspec.json.encode(book).decode()
    if len(content.encode()) > _LARGEST:
        raise errors.BadInput("rules", "too-many-bytes", limit=_LARGEST)
    row = moderation_rows.RulebookRow(key=moderation_rows.rulebook_key(site), content=content)
    return before, book, ownership.Writes(_OWNER, put=(row,))


def _prune(ban: Ban, now: datetime) -> Ban:
    if not ban.is_to_prune(now):
        return ban
    return msgspec.structs.replace(ban, known=msgspec.structs.replace(ban.known, network=""))


def forget(site: str) -> None:
    """Drop a site's rulebook from this process's cache."""
    COPIES.get().drop(site)
