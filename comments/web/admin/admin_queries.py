"""The types of the queries and forms of the admin pages."""

import re
from datetime import date
from typing import Annotated, Literal

import msgspec

from comments import errors
from comments.domain import records, site_options
from comments.domain.records import Status
from comments.moderation import review_queue, rules
from comments.web.http.request_shapes import Typed

ANY = "any"
_NUMBER = re.compile("[0-9]+")
StatusFilter = Literal["pending", "approved", "spam", "rejected", "hidden", "shadowed", "any"]
Box = Literal["", "on"]
TextLine = Annotated[str, msgspec.Meta(max_length=30_000)]
Words = Annotated[str, msgspec.Meta(max_length=review_queue.LONGEST_TEXT)]


class _Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query. Unknown parameters are errors. `cursor` is empty for the first page."""

    cursor: Typed = ""

    @property
    def start(self) -> str | None:
        """The cursor of the page; None for the first page."""
        return self.cursor or None


class QueueQuery(_Query, frozen=True):
    """Filters for a site's comments. Empty values filter nothing."""

    status: StatusFilter = "pending"
    author: Typed = ""
    q: Words = ""

    @property
    def statuses(self) -> tuple[Status, ...]:
        """The statuses to list."""
        return review_queue.STATUSES if self.status == ANY else (Status(self.status),)

    def wanted(self, site: records.Site) -> review_queue.QueueFilter:
        """Return the filter for a site."""
        return review_queue.QueueFilter(site.id, self.statuses, self.author, self.q)


class AuthorQuery(_Query, frozen=True):
    """An author on a site."""

    id: Typed = ""


class ListingQuery(_Query, frozen=True):
    """A page of a list without filters."""


class ThreadsQuery(_Query, frozen=True):
    """Threads with a text in their title or address; all threads without a text."""

    q: Words = ""


class AuditLogQuery(_Query, frozen=True):
    """A page of the audit log.

    If `subject` is set, the page lists only entries about that subject.
    """

    subject: Typed = ""


class StatisticsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query for statistics: the days up to `until` or today, in a category or everywhere."""

    days: Literal["30", "90", "365"] = "30"
    until: date | msgspec.UnsetType = msgspec.UNSET
    category: Typed = ""


class RuleQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query that selects the rule to show in the form."""

    rule: Typed = ""


class BanForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A form that bans an author or lifts a ban.

    The ban is permanent if `days` is empty. Checked boxes send "on".
    """

    act: Literal["ban", "unban", "restore"]
    days: Typed = ""
    shadow: Box = ""
    hide: Box = ""
    network_days: Typed = ""
    mailbox: Box = ""
    reason: Typed = ""


class ThreadForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state and the policy of a thread. An empty `policy` inherits the site's policy."""

    state: records.ThreadState
    policy: Literal["", "off", "first", "links", "all", "closed", "read-only"] = ""
    reason: Typed = ""


class ThreadDetailsForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The details of a thread.

    If `act` is "inherit", the thread gets its details from a comment again.
    """

    act: Literal["set", "inherit"] = "set"
    title: TextLine = ""
    url: TextLine = ""
    categories: TextLine = ""
    reason: Typed = ""


class PolicyForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The moderation settings of a site. An empty `close_after` keeps threads open."""

    policy: records.Policy
    reports: Typed
    close_after: Typed = ""
    reason: Typed = ""


class SiteForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of a site. Each list is one line with values separated by spaces or commas."""

    origins: TextLine = ""
    query_keys: TextLine = ""
    keep_trailing_slash: Box = ""
    cdn_seconds: Typed = "0"
    freshness: Typed = "0"
    categories: TextLine = ""
    moderators: TextLine = ""
    reason: Typed = ""


class OptionsForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of a site that affect its readers. An empty `live` turns live updates off."""

    votes: Box = ""
    website: Box = ""
    guests: Box = ""
    moderation: Box = ""
    forms: Box = ""
    order: site_options.DefaultOrder = "thread"
    theme: site_options.Theme = "auto"
    language: Typed = ""
    live: Typed = ""
    images: TextLine = ""
    reason: Typed = ""


class ClassifierForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of a classifier. An empty secret keeps the stored secret."""

    act: Literal["set", "rotate", "remove"]
    name: Literal["akismet", "webhook"]
    url: Typed = ""
    key: Typed = ""
    holds: Box = ""
    shows: Box = ""
    everybody: Box = ""
    reason: Typed = ""


class PostLimitsForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The post limits of a site. Empty values use the defaults of the service."""

    proof_of_work: Typed = ""
    form_seconds: Typed = ""
    posts_per_network: Typed = ""
    posts_per_author: Typed = ""
    posts_per_thread: Typed = ""
    same_texts: Typed = ""
    reason: Typed = ""


class BudgetForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The daily budget of a site. An empty value means unlimited."""

    reads: Typed = ""
    writes: Typed = ""
    mails: Typed = ""
    posts: Typed = ""
    previews: Typed = ""
    then: Literal["slow", "read-only"] = "slow"
    reason: Typed = ""


class TurnstileForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of Turnstile. An empty secret keeps the stored secret."""

    act: Literal["set", "remove"]
    key: Typed = ""
    secret: Typed = ""
    refuses: Box = ""
    reason: Typed = ""


class RuleForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule from a form. `last` is the number of recent comments to test in a dry run."""

    act: Literal["try", "put"]
    action: rules.Action
    id: Typed = ""
    words: TextLine = ""
    names: TextLine = ""
    websites: TextLine = ""
    hosts: TextLine = ""
    scripts: TextLine = ""
    networks: TextLine = ""
    links: Typed = ""
    approved_under: Typed = ""
    repeated: Typed = ""
    younger_than: Typed = ""
    is_on: Box = ""
    last: Typed = "1000"
    reason: Typed = ""


class RuleRemovalForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rule to remove."""

    id: Typed
    reason: Typed = ""


class UndoForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The audit log entry to undo."""

    entry: Typed


class DeadLetterForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A decision about a dead letter."""

    act: Literal["revive", "drop"]
    id: Typed


class NewSiteForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A website to add: its id, and the origins of its pages, separated by spaces."""

    short_name: Typed
    origin: TextLine


class UploadForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file to upload: its name, and its length in bytes."""

    name: TextLine
    size: Typed


class UploadPartQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of an uploaded file; `number` counts from 0."""

    upload: Typed
    number: Typed


class FinishedUploadForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The upload whose parts have all been sent."""

    upload: Typed


class UploadDecisionForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A decision about a checked file. The page mappings in `mapping` are separated by spaces."""

    act: Literal["import", "check", "discard"]
    upload: Typed
    mapping: TextLine = ""


class ExportQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An export: its format, and whether it includes the audit log, which WXR has no place for."""

    format: Literal["jsonl", "wxr"] = "jsonl"
    audit_log: Box = ""


class ImportQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An import of a site."""

    id: Typed


class EmptyQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query without parameters."""


def number(field: str, text: str, digits: int = 6) -> int:
    """Parse a whole number from a form.

    Raises:
        errors.BadInput: the text is not a whole number, or it has more than `digits` digits.
    """
    if not _NUMBER.fullmatch(text) or len(text) > digits:
        raise errors.BadInput(field, "not-a-number")
    return int(text)


def several(line: str) -> tuple[str, ...]:
    """Split a line at commas, or at spaces if it contains no comma."""
    pieces = line.split(",") if "," in line else line.split()
    return tuple(dict.fromkeys(each.strip() for each in pieces if each.strip()))


def phrases(line: str) -> tuple[str, ...]:
    """Split a line only at commas, because phrases contain spaces."""
    return tuple(dict.fromkeys(each.strip() for each in line.split(",") if each.strip()))
