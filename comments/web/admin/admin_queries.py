"""The types of the queries and forms of the admin pages."""

import re
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, Literal

import msgspec

from comments import errors
from comments.domain import records, site_options
from comments.events import webhooks
from comments.moderation import review_queue
from comments.moderation.policy import rules
from comments.web.http.decode.parameters import Typed

_NUMBER = re.compile("[0-9]+")
Box = Literal["", "on"]
GrantedRole = Literal["moderator", "owner"]
TextLine = Annotated[str, msgspec.Meta(max_length=30_000)]
Words = Annotated[str, msgspec.Meta(max_length=review_queue.LONGEST_TEXT)]


class _Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The base of all queries.

    Unknown parameters are errors. `cursor` is empty for the first page.
    """

    cursor: Typed = ""

    @property
    def start(self) -> str | None:
        """The cursor of the page; None for the first page."""
        return self.cursor or None


class AuthorQuery(_Query, frozen=True):
    """An author on a site."""

    id: Typed = ""


class ListingQuery(_Query, frozen=True):
    """A page of a list without filters."""


class ThreadsQuery(_Query, frozen=True):
    """The threads whose title or address contains a text; without a text, all threads."""

    q: Words = ""


class AuditLogQuery(_Query, frozen=True):
    """A page of the audit log.

    If `subject` is set, the page lists only entries about that subject.
    """

    subject: Typed = ""


class StatisticsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A period, in one category or in all of them. By default, it is the 30 days until today."""

    since: date | msgspec.UnsetType = msgspec.UNSET
    until: date | msgspec.UnsetType = msgspec.UNSET
    category: Typed = ""


class RuleQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query that selects the rule to show in the form."""

    rule: Typed = ""


class _SettingsForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A form that changes stored settings.

    A field that the request does not contain keeps its stored value.

    A field is None if it was not sent; it is "" if it was sent empty.
    """

    def parse(self, **parsers: Callable[[str], object]) -> dict[str, Any]:
        """Parse the given fields, but only those that were sent."""
        texts = {name: getattr(self, name) for name in parsers}
        return {name: parsers[name](text) for name, text in texts.items() if text is not None}

    def numbers(self, *names: str, empty: int | None, digits: int = 6) -> dict[str, Any]:
        """Parse the given fields as numbers, but only those that were sent; "" becomes `empty`."""
        texts = {name: getattr(self, name) for name in names}
        return {
            name: number(name, text, digits) if text else empty
            for name, text in texts.items()
            if text is not None
        }

    def boxes(self, *names: str) -> dict[str, Any]:
        """Return which boxes are checked, without boxes about which the request says nothing.

        Browsers always send all other fields, but never unchecked boxes. If any of the other fields
        is missing, the request does not come from the form, so a missing box does not mean that it
        is unchecked.
        """
        is_complete = None not in msgspec.structs.astuple(self)
        checked = {name: bool(getattr(self, name)) for name in names}
        return {name: is_on for name, is_on in checked.items() if is_on or is_complete}


class BanForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A form that bans an author or lifts a ban.

    The ban is permanent if `days` is empty. Checked boxes are sent as "on".
    """

    act: Literal["ban", "unban", "restore"]
    days: Typed = ""
    shadow: Box = ""
    hide: Box = ""
    network_days: Typed = ""
    mailbox: Box = ""
    reason: Typed = ""


class ThreadForm(_SettingsForm, frozen=True):
    """The state and the policy of a thread. An empty `policy` inherits the site's policy."""

    state: records.ThreadState
    policy: Literal["", "off", "first", "links", "all", "closed", "read-only"] | None = None
    reason: Typed = ""


class StoredThreadQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page of a stored thread, after the comment with the sort hash `cursor`."""

    cursor: Annotated[str, msgspec.Meta(max_length=1_000)] = ""


class StoredThreadForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do with a stored thread."""

    act: Literal["check", "repair", "rebuild"]


class ThreadDetailsForm(_SettingsForm, frozen=True):
    """The details of a thread.

    If `act` is "inherit", the thread gets its details from a comment again.
    """

    act: Literal["set", "inherit"] = "set"
    title: TextLine | None = None
    url: TextLine | None = None
    categories: TextLine | None = None
    reason: Typed = ""


class PolicyForm(_SettingsForm, frozen=True):
    """The moderation settings of a site. An empty `close_after` keeps threads open."""

    policy: records.Policy | None = None
    reports: Typed | None = None
    close_after: Typed | None = None
    reason: Typed = ""


class SiteForm(_SettingsForm, frozen=True):
    """The settings of a site. Each list is one line with values separated by spaces or commas."""

    title: Typed | None = None
    origins: TextLine | None = None
    query_keys: TextLine | None = None
    keep_trailing_slash: Box = ""
    cdn_seconds: Typed | None = None
    freshness: Typed | None = None
    categories: TextLine | None = None
    moderators: TextLine | None = None
    reason: Typed = ""


class OptionsForm(_SettingsForm, frozen=True):
    """The options of a site that affect its readers. An empty `live` turns live updates off."""

    votes: Box = ""
    website: Box = ""
    guests: Box = ""
    moderation: Box = ""
    forms: Box = ""
    order: site_options.DefaultOrder | None = None
    theme: site_options.Theme | None = None
    language: Typed | None = None
    live: Typed | None = None
    images: TextLine | None = None
    reason: Typed = ""


class ClassifierForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of a classifier. An empty secret keeps the stored secret.

    A field is only required by the classifier that uses it: `key` by Akismet, `url` by a webhook.
    """

    act: Literal["set", "rotate", "remove"]
    name: Literal["akismet", "webhook"]
    url: Typed | None = None
    key: Typed | None = None
    holds: Box = ""
    shows: Box = ""
    everybody: Box = ""
    reason: Typed = ""


class WebhookForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A webhook or chat to add, and the types of the messages that it gets.

    Telegram needs `token` and `chat`; all other forms need `url`.
    """

    kind: webhooks.MessageForm = webhooks.MessageForm.FLATTHREAD
    url: Typed | None = None
    token: Typed | None = None
    chat: Typed | None = None
    posted: Box = ""
    edited: Box = ""
    retracted: Box = ""
    held: Box = ""
    reason: Typed = ""


class WebhookChangeForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of a webhook. Only "resend" and "discard" need `letter`, the id of a message."""

    act: Literal["test", "enable", "rotate", "replace", "remove", "resend", "discard"]
    id: Typed
    letter: Typed | None = None
    reason: Typed = ""


class PostLimitsForm(_SettingsForm, frozen=True):
    """The post limits of a site. Empty values use the defaults of the service."""

    proof_of_work: Typed | None = None
    form_seconds: Typed | None = None
    posts_per_network: Typed | None = None
    posts_per_author: Typed | None = None
    posts_per_thread: Typed | None = None
    same_texts: Typed | None = None
    reason: Typed = ""


class BudgetForm(_SettingsForm, frozen=True):
    """The daily budget of a site. An empty value means unlimited."""

    reads: Typed | None = None
    writes: Typed | None = None
    mails: Typed | None = None
    posts: Typed | None = None
    previews: Typed | None = None
    then: Literal["slow", "read-only"] | None = None
    reason: Typed = ""


class TurnstileForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of Turnstile. An empty secret keeps the stored one. Only "set" needs `key`."""

    act: Literal["set", "remove"]
    key: Typed | None = None
    secret: Typed = ""
    refuses: Box = ""
    reason: Typed = ""


class RuleForm(_SettingsForm, frozen=True):
    """A rule from a form. `last` is the number of recent comments to test in a dry run."""

    act: Literal["try", "put"]
    action: rules.Action
    id: Typed = ""
    words: TextLine | None = None
    names: TextLine | None = None
    websites: TextLine | None = None
    hosts: TextLine | None = None
    scripts: TextLine | None = None
    networks: TextLine | None = None
    links: Typed | None = None
    approved_under: Typed | None = None
    repeated: Typed | None = None
    younger_than: Typed | None = None
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


class InvitationForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An invitation: the role, its site or `roles.SERVICE`, and the only address that can accept.

    `current` is the password of the owner who invites.
    """

    current: Typed
    role: GrantedRole
    site: Typed
    email: Typed = ""


class ModeratorInvitationForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An invitation of a moderator by an owner of the site, with the owner's password."""

    current: Typed
    email: Typed = ""


class ModeratorForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of a moderator's role by an owner of the site, with the owner's password."""

    id: Typed
    current: Typed
    role: Literal["owner", "none"]


class WithdrawalForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The id of a pending invitation to withdraw."""

    id: Typed


class PersonQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The id of an account."""

    id: Typed = ""


class PersonForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of an account by an owner, who confirms the change with their own password.

    `role` and `site` apply only to the act "role"; the role "none" removes the role on the site.
    """

    id: Typed
    current: Typed
    act: Literal["role", "sign-out", "reset", "reset-all", "remove"]
    role: GrantedRole | Literal["none"] = "none"
    site: Typed = ""


class PersonSearchQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A person: a comment's id, an author id, or an account's name, mail address or id."""

    who: Typed = ""


class PersonalDataForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An export or erasure of an author's data, which an owner confirms with their password."""

    author: Typed
    current: Typed = ""


class AddressForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The erasure of a mail address, which an owner confirms with their password."""

    email: Typed
    current: Typed = ""


class ProviderForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A provider to add. `current` is the password of the owner."""

    name: Typed
    issuer: Typed
    client: Typed
    secret: Typed
    title: Typed = ""
    current: Typed = ""


class ProviderChangeForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of the provider `name`; only "save" uses `sites` and `staff`."""

    act: Literal["check", "save", "remove"]
    name: Typed
    sites: TextLine = ""
    staff: Box = ""
    current: Typed = ""


class SiteKeyForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key of a site to create or revoke: "public" needs `public`, and "remove" needs `id`."""

    act: Literal["shared", "public", "remove"]
    public: Typed | None = None
    id: Typed | None = None


class CounterQuery(_Query, frozen=True):
    """A page of the numbers of the counter `name`, or no numbers."""

    name: Typed = ""


class CounterForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A counter to declare; `where` contains conditions that are separated by commas."""

    act: Literal["add", "change", "cost"]
    name: Typed
    where: TextLine = ""
    sum: Literal["comments", "up", "down", "score"] = "comments"
    category: Box = ""
    day: Box = ""
    thread: Box = ""
    author: Box = ""


class CounterRemovalForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The counter to remove."""

    name: Typed


class AudienceCountQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An audience: sources that are separated by commas."""

    every: Typed = ""
    some: Typed = ""
    but: Typed = ""


class NewSiteForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A website to add: the addresses of its pages, separated by spaces, and its id.

    If the id is empty, or was proposed (`proposed`) for another address, the page proposes a new
    id.
    """

    origin: TextLine
    short_name: Typed = ""
    proposed: Typed = ""


class RenameForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The new short name of a site."""

    short_name: Typed


class SiteCopyForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The id of a staging copy, and the origins of its pages."""

    copy_name: Typed
    origin: TextLine


class DeletionForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The id of the site to delete, and the password again. Accounts without one send none."""

    site: Typed
    current: Typed = ""


class PageForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The address of a page to check."""

    page: TextLine


class OriginForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An origin to add to a site."""

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
    """A decision about a checked file. Page mappings in `mapping` are separated by spaces."""

    act: Literal["import", "check", "discard"]
    upload: Typed
    mapping: TextLine = ""


class ExportQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An export: its format, and whether it includes the audit log; WXR cannot contain one."""

    format: Literal["jsonl", "wxr"] = "jsonl"
    audit_log: Box = ""


class ImportQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An import of a site."""

    id: Typed


class EmptyQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query without parameters."""


def require(field: str, text: str | None) -> str:
    """Return the value of a field that only some buttons of a form require.

    Raises:
        errors.BadInput: the field was not sent.
    """
    if text is None:
        raise errors.BadInput(field, "required")
    return text


def number(field: str, text: str, digits: int = 6) -> int:
    """Parse a whole number from a form.

    Raises:
        errors.BadInput: the text is not a whole number, or it has more than `digits` digits.
    """
    if not _NUMBER.fullmatch(text) or len(text) > digits:
        raise errors.BadInput(field, "not-a-number")
    return int(text)


def several(line: str) -> tuple[str, ...]:
    """Split a line at commas; if it contains no comma, at spaces."""
    pieces = line.split(",") if "," in line else line.split()
    return tuple(dict.fromkeys(piece.strip() for piece in pieces if piece.strip()))


def phrases(line: str) -> tuple[str, ...]:
    """Split a line only at commas, because phrases contain spaces."""
    return tuple(dict.fromkeys(piece.strip() for piece in line.split(",") if piece.strip()))
