"""Override a thread's title, address or categories on behalf of a moderator.

A moderator's value takes precedence over values from comments until a moderator resets the field.
The caller must have checked that the actor is allowed to make the change. The audit log entry names
the fields but does not contain their values.
"""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from comments import errors
from comments.domain import categories, records
from comments.domain.ids import thread_ids
from comments.domain.text import cleaning
from comments.events import audit_log, backlog
from comments.store import reads, transactions
from comments.store.models import comment_rows
from comments.threads import details, naming, thread_info
from comments.tree.bulk import recategorize

FIELDS = ("title", "url", "categories")
_VERB = "name-thread"


class NewDetails(NamedTuple):
    """The new values; None keeps a field unchanged. `inherits` lists the fields to reset."""

    title: str | None = None
    url: str | None = None
    categories: Collection[str] | None = None
    inherits: Collection[str] = ()


class Named(NamedTuple):
    """The changed thread, and the number of comments that moved to other categories."""

    thread: records.Thread
    moved: int


def change_details(
    site: records.Site,
    thread: str,
    wanted: NewDetails,
    actor: records.Actor,
    *,
    now: datetime,
    reason: str = "",
) -> Named:
    """Set fields of a thread, or reset them to the values from its oldest approved comment.

    Raises:
        errors.BadInput: a field is invalid; the error names the field.
        errors.NotFound: the thread has no comments yet.
        errors.Overloaded: the store is busy; comments that have not moved yet are moved later.
    """
    fields = tuple(field for field in FIELDS if getattr(wanted, field) is not None)
    for field in wanted.inherits:
        if field not in FIELDS or field in fields:
            raise errors.BadInput(
                "inherit", "unknown-value", allowed=", ".join(set(FIELDS) - set(fields))
            )
    given = _check_details(site, thread, wanted)
    where = records.ThreadName(site.id, thread)
    act = audit_log.Act(actor, _VERB, reason)

    def body() -> None:
        row = reads.get(comment_rows.thread_key(where))
        if row is None:
            raise errors.NotFound("thread", thread)
        if transactions.may_have_run() and audit_log.is_done(act):
            return
        before = _own_fields_text(row)
        writes = details.field_writes(row, given, fields=fields, inherits=tuple(wanted.inherits))
        subject = f"thread:{comment_rows.thread_key_name(where)}"
        note = audit_log.entry_writes(
            act, site.id, subject, before=before, after=_own_fields_text(row), now=now
        )
        transactions.apply(writes, note)

    transactions.transaction(body, line=f"{where.site}/{where.id}")
    backlog.note_erasure(where)
    moved = recategorize.run_to_end(where, now=now)
    info = thread_info.fresh(where)
    if info is None:
        raise errors.NotFound("thread", thread)
    return Named(info, moved)


def _check_details(site: records.Site, thread: str, wanted: NewDetails) -> naming.Brought:
    url = wanted.url or ""
    if url and not thread_info.address(url, site):
        raise errors.BadInput("url", "wrong-origin", allowed=", ".join(site.origins))
    return naming.Brought(
        title=cleaning.clean_title(wanted.title or ""),
        url=thread_ids.page_url(url, thread, site) if url else "",
        categories=tuple(categories.canonical_set(wanted.categories or ())),
    )


def _own_fields_text(row: comment_rows.ThreadRow) -> str:
    return f"set by moderators: {', '.join(row.own) or 'nothing'}"
