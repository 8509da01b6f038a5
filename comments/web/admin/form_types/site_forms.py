"""The queries and forms about sites, threads, numbers, imports and exports."""

from datetime import date
from typing import Annotated, Literal

import msgspec

from comments.domain import records
from comments.web.admin.form_types import form_fields
from comments.web.http.decode.parameters import Typed


class ThreadsQuery(form_fields.CursorQuery, frozen=True):
    """The threads whose title or address contains a text, and that are in a category.

    An empty value does not filter. A search by text always lists in the order "activity".
    """

    q: form_fields.Words = ""
    category: Typed = ""
    order: Literal["activity", "comments"] = "activity"

    @property
    def shown_order(self) -> str:
        """The order in which the threads are listed."""
        return "activity" if self.q else self.order


class AuditLogQuery(form_fields.CursorQuery, frozen=True):
    """A page of the audit log.

    If `subject` is set, the page lists only entries about that subject.
    """

    subject: Typed = ""


class StatisticsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A period, in one category or in all of them.

    By default, it is the 30 days until today or, without comments there, until the last ones.
    """

    since: date | msgspec.UnsetType = msgspec.UNSET
    until: date | msgspec.UnsetType = msgspec.UNSET
    category: Typed = ""


class ThreadForm(form_fields.SettingsForm, frozen=True):
    """The state and the policy of a thread. An empty `policy` inherits the site's policy."""

    state: records.ThreadState
    policy: Literal["", "off", "first", "links", "all", "closed", "read-only"] | None = None
    reason: Typed = ""


class CommentTextForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The new text of a comment. If `revision` is set, only a text of that revision is replaced."""

    body: str
    revision: Typed = ""
    reason: Typed = ""


class ReplyForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reply to a comment. `key` makes a form that is sent twice store one reply."""

    body: str
    key: Annotated[str, msgspec.Meta(min_length=16, max_length=64)]


class StoredThreadQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page of a stored thread, after the comment with the sort hash `cursor`."""

    cursor: Annotated[str, msgspec.Meta(max_length=1_000)] = ""


class StoredThreadForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do with a stored thread."""

    act: Literal["check", "repair", "rebuild"]


class ThreadDetailsForm(form_fields.SettingsForm, frozen=True):
    """The details of a thread.

    If `act` is "inherit", the thread gets its details from a comment again.
    """

    act: Literal["set", "inherit"] = "set"
    title: form_fields.TextLine | None = None
    url: form_fields.TextLine | None = None
    categories: form_fields.TextLine | None = None
    reason: Typed = ""


class MovesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The address or id of a thread to move or merge, or the id of a comment to split off."""

    old: form_fields.TextLine = ""
    comment: form_fields.TextLine = ""


class MoveForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A move of threads from `old` to `new`, or the list `pages` with an `old,new` in each line.

    `old` and `new` are the addresses of one page, or a mapping of pages (`page_mapping`). A merge
    is of `source` into `target`; a split moves `comment` to `target`. `planned` is the number of
    threads in the preview that the owner confirms, or the number of comments that a merge or a
    split moves; without it, a preview follows.
    """

    way: Literal["page", "pages", "list", "merge", "split"]
    old: form_fields.TextLine = ""
    new: form_fields.TextLine = ""
    pages: str = ""
    source: form_fields.TextLine = ""
    target: form_fields.TextLine = ""
    comment: form_fields.TextLine = ""
    planned: Typed = ""


class DoublesForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether to look for doubled pages, or to merge those that were found.

    `planned` is the number of pages in the preview of the merges that the owner confirms.
    """

    act: Literal["look", "merge"]
    planned: Typed = ""


class MoveUndoForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The move to undo."""

    id: Typed


class UndoForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The audit log entry to undo."""

    entry: Typed


class DeadLetterForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A decision about a dead letter, or about all of them, without `id`."""

    act: Literal["revive", "drop", "revive-all", "drop-all"]
    id: Typed | None = None


class CounterQuery(form_fields.CursorQuery, frozen=True):
    """A page of the numbers of the counter `name`, or no numbers."""

    name: Typed = ""


class CounterForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A counter to declare; `where` contains conditions that are separated by commas."""

    act: Literal["add", "change", "cost"]
    name: Typed
    where: form_fields.TextLine = ""
    sum: Literal["comments", "up", "down", "score"] = "comments"
    category: form_fields.Box = ""
    day: form_fields.Box = ""
    thread: form_fields.Box = ""
    author: form_fields.Box = ""


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

    origin: form_fields.TextLine
    short_name: Typed = ""
    proposed: Typed = ""


class RenameForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The new short name of a site."""

    short_name: Typed


class SiteCopyForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The id of a staging copy, the origins of its pages, and whether it gets the comments."""

    copy_name: Typed
    origin: form_fields.TextLine
    comments: Typed = ""


class DeletionForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The id of the site to delete, and the password again. Accounts without one send none."""

    site: Typed
    current: Typed = ""


class PageForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The address of a page to check."""

    page: form_fields.TextLine


class OriginForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An origin to add to a site."""

    origin: form_fields.TextLine


class UploadForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file to upload: its name, and its length in bytes."""

    name: form_fields.TextLine
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
    mapping: form_fields.TextLine = ""


class ExportQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An export: its format, and whether it includes the audit log; WXR cannot contain one."""

    format: Literal["jsonl", "wxr"] = "jsonl"
    audit_log: form_fields.Box = ""


class ImportQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An import of a site."""

    id: Typed
