"""Define the lines of an export in our own format (docs/export-format.md).

An export is a text file with one JSON object on each line. The field `kind` names the line's type:

    header      the format, its version, the site, the time of the export, and what it includes
    settings    the site's settings and its moderation settings, without secrets
    counter     the declaration of a counter
    thread      a thread, followed by its comments in reading order
    comment     a comment; its parent precedes it
    audit       a decision in the audit log, newest first; only if the header includes them
    end         the numbers of lines, and a digest of all lines between header and end

Fields with their default value are omitted, and fields always have the same order. A change that
older importers would misunderstand requires a higher `VERSION`. New fields do not require one,
because importers count unknown fields and ignore them.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from comments.domain import records, site_options
from comments.domain.moderation.reasons import HoldReason
from comments.events import audit_log
from comments.sites import site_settings

FORMAT = "flatthread"
VERSION = 1

ADDRESSES = "addresses"
AUDIT_LOG = "audit-log"

# Limits for values in a file to import, which may be damaged or written by strangers. A number
# above its limit could leave a thread without free numbers.
Number = Annotated[int, Meta(ge=0, le=1_000_000)]
Detail = Annotated[str, Meta(pattern=r"^(title|url|categories)\Z")]
Vote = Annotated[int, Meta(ge=-1, le=1)]
Votes = Annotated[int, Meta(ge=0, le=1_000_000_000)]
_PATH = r"^[1-9][0-9]{0,18}(-[1-9][0-9]{0,18})*"
Slug = Annotated[str, Meta(max_length=200, pattern=rf"{_PATH}\Z")]
# With the digest of an id of the thread that the comment has left (`slugs`), if any.
FormerSlug = Annotated[str, Meta(max_length=220, pattern=rf"{_PATH}(@[A-Za-z0-9_-]{{12}})?\Z")]
Title = Annotated[str, Meta(max_length=500)]
Short = Annotated[str, Meta(max_length=300)]
Long = Annotated[str, Meta(max_length=5_000)]
Logged = Annotated[str, Meta(max_length=2_000)]
# The markup languages of a comment's text.
Markup = Literal["markdown", "html"]


class HeaderLine(msgspec.Struct, frozen=True, tag="header", tag_field="kind"):
    """The first line. `includes` lists the optional parts: `ADDRESSES`, `AUDIT_LOG`."""

    format: str
    version: int
    site: str
    time: datetime
    includes: tuple[str, ...] = ()


class TreeScheme(msgspec.Struct, frozen=True):
    """The scheme of the site's sort hashes (`sorthash`)."""

    digits: str
    width: int
    levels: int


class ExportedBan(msgspec.Struct, frozen=True, omit_defaults=True):
    """The ban of an author, without the marks by which the author's networks are recognized."""

    author: str
    until: datetime | None = None
    shadow: bool = False


class ExportedModeration(msgspec.Struct, frozen=True):
    """A site's moderation settings.

    `rules` are in their stored form (`moderation/policy/rules`).
    """

    policy: records.Policy = records.Policy.OFF
    close_after: int = 0
    reports: int = 0
    rules: tuple[dict[str, Any], ...] = ()
    bans: tuple[ExportedBan, ...] = ()


class SettingsLine(msgspec.Struct, frozen=True, tag="settings", tag_field="kind"):
    """A site's settings. `moderators` is empty unless the export includes addresses."""

    origins: tuple[str, ...]
    scheme: TreeScheme
    title: str = ""
    query_keys: tuple[str, ...] = ()
    keep_trailing_slash: bool = False
    ignore_www: bool = False
    ignore_amp: bool = False
    cdn_seconds: Annotated[int, Meta(ge=0, le=site_settings.LONGEST_CDN)] = 0
    freshness: Annotated[int, Meta(ge=0, le=site_settings.LONGEST_FRESHNESS)] = 0
    categories: tuple[str, ...] = ()
    moderators: tuple[str, ...] = ()
    post_limits: records.OwnPostLimits = records.OwnPostLimits()
    budget: records.Budget = records.Budget()
    options: site_options.SiteOptions = site_options.SiteOptions()
    moderation: ExportedModeration = ExportedModeration()


class CounterLine(msgspec.Struct, frozen=True, tag="counter", tag_field="kind", omit_defaults=True):
    """A declared counter: its conditions (such as "status = approved"), its keys, and its sum."""

    name: str
    where: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    sum: str = "comments"


class ExportedPage(msgspec.Struct, frozen=True, omit_defaults=True):
    """The thread data that was posted with a comment."""

    title: Title = ""
    url: str = ""
    categories: tuple[str, ...] = ()


class ThreadLine(msgspec.Struct, frozen=True, tag="thread", tag_field="kind", omit_defaults=True):
    """A thread.

    `policy` is empty if the thread follows the site's policy. `own` lists the fields that a
    moderator set; all other fields come from the comment `named_by`. `aliases` are other ids of the
    thread, from before it moved.
    """

    id: str
    title: Title = ""
    url: str = ""
    state: records.ThreadState = records.ThreadState.OPEN
    policy: records.Policy | None = None
    categories: tuple[str, ...] = ()
    created: datetime | None = None
    own: tuple[Detail, ...] = ()
    named_by: str = ""
    aliases: tuple[str, ...] = ()


class ExportedAuthor(msgspec.Struct, frozen=True, omit_defaults=True):
    """A comment's author. `email` is omitted unless the export includes addresses."""

    id: str = ""
    name: str = ""
    website: str = ""
    email: str = ""
    staff: bool = False


class CommentLine(msgspec.Struct, frozen=True, tag="comment", tag_field="kind", omit_defaults=True):
    """A comment.

    `parent` is the comment above this one in the tree, `reply_to` is the comment that this one
    answers, and `number` is this comment's number among its siblings. `slug` consists of the
    numbers on the path from the root, and `former_slugs` are slugs of earlier trees and threads.

    `text` is the text as its author wrote it. `html` is present only if this release no longer has
    the renderer that made it; importers ignore it.

    `up` and `down` are the numbers of votes; `votes` contains the votes of known voters, by author
    id. `stood` is the status before the last decision, and `judged` is the time of that decision.
    `page` is null if it is unknown, and omitted if it equals the thread's title, address and
    categories.
    """

    id: str
    thread: str
    number: Number
    slug: Slug
    status: records.Status
    created: datetime
    parent: str | None = None
    reply_to: str | None = None
    author: ExportedAuthor = ExportedAuthor()
    markup: Markup = "markdown"
    text: str = ""
    html: str = ""
    edited: datetime | None = None
    edited_by_staff: bool = False
    up: Votes = 0
    down: Votes = 0
    votes: Mapping[str, Vote] = {}
    pinned: bool = False
    rule: Short = ""
    why: Long = ""
    reasons: tuple[HoldReason, ...] = ()
    stood: records.Status | None = None
    judged: datetime | None = None
    source: Short = ""
    former_slugs: tuple[FormerSlug, ...] = ()
    page: ExportedPage | msgspec.UnsetType | None = msgspec.UNSET


class AuditLine(msgspec.Struct, frozen=True, tag="audit", tag_field="kind", omit_defaults=True):
    """A decision in the audit log."""

    id: str
    subject: Logged
    verb: Logged
    actor: Logged
    at: datetime
    actor_name: Logged = ""
    before: Logged = ""
    after: Logged = ""
    reason: Annotated[str, Meta(max_length=audit_log.LONGEST_REASON)] = ""


class EndLine(msgspec.Struct, frozen=True, tag="end", tag_field="kind"):
    """The last line: the numbers of lines, and the SHA-256 digest of all lines after the header.

    Exports contain all fields. In an edited file, fields may be missing; missing fields are not
    compared.
    """

    threads: int | None = None
    comments: int | None = None
    votes: int | None = None
    statuses: Mapping[str, int] = {}
    audit: int | None = None
    sha256: str = ""


Line = SettingsLine | CounterLine | ThreadLine | CommentLine | AuditLine
