"""The audit log: who decided what, when, and why.

This module owns the kind AuditEntry. An entry is written in the transaction of its decision, so
each stored decision has exactly one entry, and no entry exists without its decision. The entry's id
is generated once, before that transaction. If the transaction's body runs again, it finds its own
entry and does nothing more (`is_done`). Entries that `import_writes` adds from a
Flatthread export are the exception: an undo of their import deletes them.

    AuditEntry  site, `subject` (id of a comment; "thread:" and a thread's id; "author:" and an id),
                verb, actor's id and name, `at`, `before`, `after`, `reason`, `back` (the previous
                policy, ban or lock, in the form that `policy_changes` restores)

Invariant: An entry contains no comment text, no address and no network
(test_decisions.py::test_the_log_names_the_decision_and_its_actor_but_nothing_of_the_comment).

A moderator writes `reason` for other moderators.
"""

import dataclasses
import secrets
from collections.abc import Sequence
from datetime import datetime

from comments import errors
from comments.domain import records
from comments.store import ownership, reads
from comments.store.models import comment_rows, moderation_rows

_OWNER = "audit_log"
LONGEST_REASON = 500
MOST = 200  # Maximum number of entries per page.


@dataclasses.dataclass(frozen=True, slots=True)
class Act:
    """A decision that a moderator is about to make.

    Create one instance per decision, because its id identifies repeated runs.
    """

    actor: records.Actor
    verb: str
    reason: str = ""
    id: str = dataclasses.field(
        default_factory=lambda: comment_rows.comment_id(secrets.token_bytes(16))
    )

    def __post_init__(self) -> None:
        """Validate the reason.

        Raises:
            errors.BadInput: the reason is too long, or is not one line of printable text.
        """
        if len(self.reason) > LONGEST_REASON or not self.reason.isprintable():
            raise errors.BadInput("reason", "not-one-line", limit=LONGEST_REASON)


@dataclasses.dataclass(frozen=True, slots=True)
class Noted:
    """The decision to change settings and the time of the change."""

    act: Act
    now: datetime


def is_done(act: Act) -> bool:
    """Return whether an earlier run of the current transaction was applied."""
    return reads.get(moderation_rows.audit_key(act.id)) is not None


def entry_writes(  # noqa: PLR0913 - one for each part of an entry
    act: Act, site: str, subject: str, *, before: str, after: str, now: datetime, back: str = ""
) -> ownership.Writes:
    """Record a decision in the decision's transaction."""
    row = moderation_rows.AuditEntryRow(
        key=moderation_rows.audit_key(act.id),
        site=site,
        subject=subject,
        verb=act.verb,
        actor=act.actor.id,
        actor_name=act.actor.name,
        at=now,
        before=before,
        after=after,
        reason=act.reason,
        back=back,
    )
    return ownership.Writes(_OWNER, insert=(row,))


def import_writes(entries: Sequence[records.Audit]) -> ownership.Writes:
    """Add the entries of an export whose ids do not exist yet. Added entries cannot be undone.

    Of several entries with the same id, only the first is added.
    """
    first = {entry.id: entry for entry in reversed(entries)}
    entries = [entry for entry in entries if entry is first[entry.id]]
    rows = reads.get_multi([moderation_rows.audit_key(entry.id) for entry in entries])
    insert = tuple(
        moderation_rows.AuditEntryRow(
            key=moderation_rows.audit_key(entry.id),
            site=entry.site,
            subject=entry.subject,
            verb=entry.verb,
            actor=entry.actor.id,
            actor_name=entry.actor.name,
            at=entry.at,
            before=entry.before,
            after=entry.after,
            reason=entry.reason,
            back="",
        )
        for entry, row in zip(entries, rows, strict=True)
        if row is None
    )
    return ownership.Writes(_OWNER, insert=insert)


def removal_writes(entry_ids: Sequence[str]) -> ownership.Writes:
    """Delete entries that `import_writes` added."""
    return ownership.Writes(_OWNER, delete=tuple(map(moderation_rows.audit_key, entry_ids)))


def entry(site: str, entry_id: str) -> records.Audit:
    """Read one entry from a site's log.

    Raises:
        errors.NotFound: the site's log does not contain the entry.
    """
    row = (
        reads.get(moderation_rows.audit_key(entry_id))
        if comment_rows.is_comment_id(entry_id)
        else None
    )
    if row is None or row.site != site:
        raise errors.NotFound("entry", entry_id)
    return moderation_rows.audit_record(row)


def log(
    site: str,
    *,
    subject: str = "",
    before: datetime | None = None,
    after: records.Audit | None = None,
    limit: int = 50,
) -> list[records.Audit]:
    """Read a site's log entries about one subject or all subjects, newest first.

    `before` limits the entries to earlier times; `after` is the last entry of the previous page.

    Entries with the same time, for example from a bulk decision, are ordered by id, so that paging
    can continue among them.

    Raises:
        errors.BadInput: the limit is not between 1 and `MOST`.
    """
    if not 1 <= limit <= MOST:
        raise errors.BadInput("limit", "out-of-range", minimum=1, maximum=MOST)
    where: list[tuple[str, str, object]] = [("site", "=", site)]
    where += [("subject", "=", subject)] if subject else []
    names: list[str] = []
    if after is not None:
        ties = (*where, ("at", "=", after.at), ("__key__", ">", after.id))
        names = _names(ties, ("__key__",), limit)
        before = after.at
    where += [("at", "<", before)] if before is not None else []
    if len(names) < limit:
        names += _names(tuple(where), ("-at",), limit - len(names))
    rows = reads.get_multi([moderation_rows.audit_key(name) for name in names])
    return [moderation_rows.audit_record(row) for row in rows if row is not None]


def _names(
    where: tuple[tuple[str, str, object], ...], order: tuple[str, ...], limit: int
) -> list[str]:
    return reads.names("AuditEntry", where, order=order, limit=limit)
