"""What is asked of the desk: the queries of its pages, as typed values."""

import re
from typing import Annotated, Literal

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.records import Status
from comments.moderation import review_queue, rules
from comments.web.http.request_shapes import Typed

ANY = "any"
_NUMBER = re.compile("[0-9]+")
Shown = Literal["pending", "approved", "spam", "rejected", "hidden", "shadowed", "any"]
Box = Literal["", "on"]
Line = Annotated[str, msgspec.Meta(max_length=30_000)]
Words = Annotated[str, msgspec.Meta(max_length=review_queue.LONGEST_TEXT)]


class _Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query: what we do not know is refused, not dropped. `cursor` is empty for the start."""

    cursor: Typed = ""

    @property
    def start(self) -> str | None:
        """Where a listing goes on."""
        return self.cursor or None


class Queue(_Query, frozen=True):
    """Which comments of a site. What a form leaves empty is not asked for."""

    status: Shown = "pending"
    author: Typed = ""
    q: Words = ""

    @property
    def statuses(self) -> tuple[Status, ...]:
        """The statuses to show."""
        return review_queue.STATUSES if self.status == ANY else (Status(self.status),)

    def wanted(self, site: records.Site) -> review_queue.Wanted:
        """What to look for on a site."""
        return review_queue.Wanted(site.id, self.statuses, self.author, self.q)


class Author(_Query, frozen=True):
    """Which author of a site."""

    id: Typed = ""


class Listing(_Query, frozen=True):
    """A listing that is not narrowed."""


class Log(_Query, frozen=True):
    """Which entries of a log: those before a moment, of all or of one subject."""

    subject: Typed = ""


class Statistics(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which days: those of a category, or of all, up to now."""

    days: Literal["30", "90", "365"] = "30"
    category: Typed = ""


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which rule is in the form."""

    rule: Typed = ""


class Ban(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an author is banned: for `days`, for good where that is empty. Boxes say "on"."""

    act: Literal["ban", "unban", "restore"]
    days: Typed = ""
    shadow: Box = ""
    hide: Box = ""
    network_days: Typed = ""
    mailbox: Box = ""
    reason: Typed = ""


class Thread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a thread is to be: `policy` is empty for its site's."""

    state: records.ThreadState
    policy: Literal["", "off", "first", "links", "all", "closed", "read-only"] = ""
    reason: Typed = ""


class Title(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a thread is to show of itself; `act` "inherit" shows what a comment brought again."""

    act: Literal["set", "inherit"] = "set"
    title: Line = ""
    url: Line = ""
    categories: Line = ""
    reason: Typed = ""


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a site is moderated."""

    policy: records.Policy
    close_after: Typed
    reports: Typed
    reason: Typed = ""


class Site(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a site is. Several of a sort stand in one line, with spaces or commas between them."""

    origins: Line = ""
    query_keys: Line = ""
    keep_trailing_slash: Box = ""
    cdn_seconds: Typed = "0"
    freshness: Typed = "0"
    categories: Line = ""
    moderators: Line = ""
    reason: Typed = ""


class Adviser(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whom a site asks outside, and on which terms; what is secret stays what it was if empty."""

    act: Literal["set", "rotate", "remove"]
    name: Literal["akismet", "webhook"]
    url: Typed = ""
    key: Typed = ""
    holds: Box = ""
    shows: Box = ""
    everybody: Box = ""
    reason: Typed = ""


class Guard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a site asks of those who post. What is empty is the service's."""

    proof_of_work: Typed = ""
    form_seconds: Typed = ""
    posts_per_network: Typed = ""
    posts_per_author: Typed = ""
    posts_per_thread: Typed = ""
    same_texts: Typed = ""
    reason: Typed = ""


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a site may use on a day. What is empty is any number."""

    reads: Typed = ""
    writes: Typed = ""
    mails: Typed = ""
    posts: Typed = ""
    previews: Typed = ""
    then: Literal["slow", "read-only"] = "slow"
    reason: Typed = ""


class Turnstile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether Turnstile is asked; a secret that is empty stays what it was."""

    act: Literal["set", "remove"]
    key: Typed = ""
    secret: Typed = ""
    refuses: Box = ""
    reason: Typed = ""


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule as a form sends it; `last` is how many comments it is tried on."""

    act: Literal["try", "put"]
    action: rules.Action
    id: Typed = ""
    words: Line = ""
    names: Line = ""
    websites: Line = ""
    hosts: Line = ""
    scripts: Line = ""
    networks: Line = ""
    links: Typed = ""
    approved_under: Typed = ""
    repeated: Typed = ""
    younger_than: Typed = ""
    is_on: Box = ""
    last: Typed = "1000"
    reason: Typed = ""


class Removal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which rule is to go."""

    id: Typed
    reason: Typed = ""


class Undo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which entry of the log is to be taken back."""

    entry: Typed


class Letter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of a letter that was given up."""

    act: Literal["revive", "drop"]
    id: Typed


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No query at all."""


def number(field: str, text: str, digits: int = 6) -> int:
    """A whole number of a form.

    Raises:
        errors.BadInput: it is none, or has more digits.
    """
    if not _NUMBER.fullmatch(text) or len(text) > digits:
        raise errors.BadInput(field, "is not a whole number")
    return int(text)


def several(line: str) -> tuple[str, ...]:
    """What stands in a line with commas between, or blanks where there is no comma."""
    pieces = line.split(",") if "," in line else line.split()
    return tuple(dict.fromkeys(each.strip() for each in pieces if each.strip()))


def phrases(line: str) -> tuple[str, ...]:
    """What stands in a line with commas between; blanks are part of it."""
    return tuple(dict.fromkeys(each.strip() for each in line.split(",") if each.strip()))
