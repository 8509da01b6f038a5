"""Moderate comments: decide about them, restore and pin them, and edit their texts.

Each decision is one transaction. The caller must have checked that the actor is allowed to moderate
the site.

Invariant: If the caller passes the revision that the moderator saw, the decision fails after any
later change to the text or status
(test_decisions.py::test_an_approval_races_with_the_authors_edit_and_approves_only_the_seen_text).

The commit that changes the comment also writes the audit log entry. Repeating a decision changes
nothing.
"""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from datetime import datetime

from comments import errors
from comments.domain import presentation, records
from comments.domain.languages import error_texts
from comments.domain.records import Ruling, Status, Verb
from comments.domain.text import cleaning, imported_html, rendering, sanitizing
from comments.events import audit_log, backlog
from comments.moderation import reports
from comments.moderation.classifiers import classifier_answers
from comments.moderation.policy import author_links
from comments.store import reads, transactions
from comments.store.models import comment_rows, conversion
from comments.tree import status_changes, values

MOST_AT_ONCE = 100  # Maximum number of comments in one bulk decision.
BY_MODERATOR = records.BY_MODERATOR
EDIT = "edit"  # The verb of an edit in the audit log. It cannot be undone, because no text is kept.

_OPPOSITES = {Verb.PIN: Verb.UNPIN, Verb.UNPIN: Verb.PIN}


@dataclasses.dataclass(frozen=True, slots=True)
class DecisionResult:
    """The result for one of many comments: the comment, or the error's code and message."""

    id: str
    comment: records.Comment | None
    code: str = ""
    message: str = ""


def decide(  # noqa: PLR0913 - the comment, the decision and the actor
    site: str,
    comment_id: str,
    verb: Verb,
    actor: records.Actor,
    *,
    now: datetime,
    reason: str = "",
    revision: int | None = None,
    entry: str = "",
) -> records.Comment:
    """Apply a moderator's decision to a comment on a site.

    Args:
        site: the site that the actor moderates; comments on other sites are not found.
        comment_id: the id of the comment.
        verb: the decision.
        actor: the moderator, for the audit log.
        now: the current time.
        reason: the moderator's reason in one line, for other moderators.
        revision: the revision that the moderator saw; with None, the decision applies to any
            revision.
        entry: the id of the entry in the audit log, if the caller chooses it. A decision whose
            entry exists is not made again.

    Raises:
        errors.NotFound: the comment does not exist on the site.
        errors.Conflict: see `status_changes.judge`, `status_changes.restore` and
            `status_changes.pin`.
        errors.RevisionMismatch: the comment's text or status has changed.
        errors.BadInput: the reason is too long or is not a single line.
        errors.Overloaded: the store did not respond in time; repeating the call is safe.
    """
    act = _act(actor, verb, reason, entry)
    decision = status_changes.Decision(act, now, lambda case: _check_site(case, site), revision)
    return _apply(comment_id, verb, decision)


def decide_many(
    site: str,
    comment_ids: Sequence[str],
    verb: Verb,
    actor: records.Actor,
    *,
    now: datetime,
    reason: str = "",
) -> list[DecisionResult]:
    """Apply one decision to many comments, each in its own transaction, and return all results.

    Raises:
        errors.BadInput: there are more than `MOST_AT_ONCE` comments, or the reason is too long or
            is not a single line.
    """
    if len(comment_ids) > MOST_AT_ONCE:
        raise errors.BadInput("comments", "too-many-items", limit=MOST_AT_ONCE)
    audit_log.Act(actor, verb.value, reason)  # Checks the reason before the first decision.
    chosen = list(dict.fromkeys(comment_ids))
    return _decide_each(chosen, lambda one: decide(site, one, verb, actor, now=now, reason=reason))


def rewrite(  # noqa: PLR0913 - the comment, its text and the actor
    site: str,
    comment_id: str,
    body: str,
    actor: records.Actor,
    *,
    now: datetime,
    reason: str = "",
    revision: int | None = None,
) -> records.Comment:
    """Replace a comment's text for its site's staff; readers see who edited it.

    The status stays, and neither rules nor classifiers judge the text. The text has the markup of
    the text that it replaces: HTML if that was imported as HTML, otherwise Markdown. See `decide`
    for the other arguments.

    Raises:
        errors.NotFound: the comment does not exist on the site.
        errors.Conflict: the comment was retracted.
        errors.RevisionMismatch: the comment's text has changed.
        errors.BadInput: the text is not valid, or the reason is too long or is not a single line.
    """
    text = _rendered_text(comment_id, cleaning.clean_body(body))
    act = audit_log.Act(actor, EDIT, reason)
    decision = status_changes.Decision(act, now, lambda case: _check_site(case, site), revision)

    def step() -> values.ChangeResult:
        change = status_changes.rewrite(comment_id, text, decision)
        transactions.apply(*change.writes)
        return change

    change = transactions.transaction(step, line=comment_id)
    backlog.tell(change.event)
    backlog.note_erasure(records.ThreadName(site, change.comment.thread))
    return change.comment


def undo(
    site: str,
    entry_id: str,
    actor: records.Actor,
    *,
    now: datetime,
    reason: str = "",
    entry: str = "",
) -> records.Comment:
    """Undo the decision in an audit log entry unless a later decision has replaced it.

    `entry` has the same meaning as in `decide`.

    Raises:
        errors.NotFound: the site's log does not contain the entry.
        errors.Conflict: the comment's status has changed since, or the entry is about an edit or
            is not about a comment.
    """
    undone = audit_log.entry(site, entry_id)
    if not comment_rows.is_comment_id(undone.subject) or undone.verb == EDIT:
        raise errors.Conflict("not-undoable")
    verb = _OPPOSITES.get(Verb(undone.verb), Verb.RESTORE)

    def check(case: records.Case) -> None:
        _check_site(case, site)
        is_current = (case.stood, case.comment.status) == (undone.before, undone.after)
        if verb is Verb.RESTORE and not is_current:
            raise errors.Conflict("decided-since")

    act = _act(actor, verb, reason, entry)
    return _apply(undone.subject, verb, status_changes.Decision(act, now, check))


def decide_all(
    site: str, author: str, verb: Verb, actor: records.Actor, *, now: datetime, reason: str = ""
) -> list[DecisionResult]:
    """Hide the approved comments of an author and of all linked ids, or restore the hidden ones.

    One call decides about at most `MOST_AT_ONCE` comments. If a call returns `MOST_AT_ONCE`
    results, repeat it.
    """
    ids = _by_author(site, author, Status.APPROVED if verb is Verb.HIDE else Status.HIDDEN)
    return _decide_each(ids, lambda one: decide(site, one, verb, actor, now=now, reason=reason))


def own_comments(name: records.ThreadName, *authors: str) -> list[records.Comment]:
    """Return one person's comments in a thread that appear published or pending to the person.

    The comments are in reading order, with at most `MOST_AT_ONCE` per author id and status. Authors
    normally have fewer comments.
    """
    # The list includes approved comments although everyone sees them. If it contained only shadowed
    # comments, shadow-banned authors could discover the ban.
    names: list[str] = []
    for author, status in itertools.product(filter(None, authors), presentation.OWN_STATUSES):
        where = (
            ("thread", "=", comment_rows.thread_key_name(name)),
            ("author_id", "=", author),
            ("status", "=", status.value),
        )
        names += _keys(where)
    rows = reads.get_multi([comment_rows.comment_key(name) for name in names])
    comments = [conversion.comment_record(row) for row in rows if row is not None]
    return sorted(comments, key=lambda comment: comment.sort_hash)


def author_id(site: str, given: str) -> str:
    """Return the author id that a moderator gave, or the author id of the given comment.

    Raises:
        errors.NotFound: the site has no such comment.
    """
    if not comment_rows.is_comment_id(given):
        return given
    return case(site, given).comment.author.id


def case(site: str, comment_id: str) -> records.Case:
    """Return a comment as moderators see it.

    Raises:
        errors.NotFound: the comment does not exist on the site.
    """
    row = reads.get(comment_rows.comment_key(comment_id)) if comment_id else None
    if row is None or row.site != site:
        raise errors.NotFound("comment", comment_id)
    return conversion.case_record(row)


def _apply(comment_id: str, verb: Verb, decision: status_changes.Decision) -> records.Comment:
    def body() -> values.ChangeResult:
        if verb is Verb.RESTORE:
            change = status_changes.restore(comment_id, decision)
        elif verb in _OPPOSITES:
            change = status_changes.pin(comment_id, decision, is_pinned=verb is Verb.PIN)
        else:
            ruling = Ruling(records.BECOMES[verb], BY_MODERATOR, decision.act.reason)
            change = status_changes.judge(comment_id, ruling, decision)
        transactions.apply(*change.writes)
        if verb in {Verb.APPROVE, Verb.RESTORE} and change.comment.status is Status.APPROVED:
            transactions.apply(reports.settlement_writes(comment_id, now=decision.now))
        transactions.apply(
            *classifier_answers.correction_writes(change.comment, change.event, now=decision.now)
        )
        return change

    change = transactions.transaction(body, line=comment_id)
    if change.event:
        comment = change.comment
        backlog.tell(change.event)
        # Removed text must leave the buckets immediately, whereas approved comments can be
        # compacted later.
        note = backlog.note_changes if comment.status is Status.APPROVED else backlog.note_erasure
        note(records.ThreadName(comment.site, comment.thread))
    return change.comment


def _rendered_text(comment_id: str, body: str) -> values.RenderedText:
    row = reads.get(comment_rows.comment_key(comment_id)) if comment_id else None
    if row is not None and row.renderer.partition("-")[0] == "html":
        return values.RenderedText(body, imported_html.convert(body).html, sanitizing.SANITISER)
    return values.RenderedText(body, rendering.render_markdown(body), rendering.RENDERER)


def _act(actor: records.Actor, verb: Verb, reason: str, entry: str) -> audit_log.Act:
    made = audit_log.Act(actor, verb.value, reason)
    return dataclasses.replace(made, id=entry) if entry else made


def _check_site(case: records.Case, site: str) -> None:
    if not site or case.comment.site != site:
        raise errors.NotFound("comment", case.comment.id)


def _decide_each(
    comment_ids: Sequence[str], step: Callable[[str], records.Comment]
) -> list[DecisionResult]:
    outcomes: list[DecisionResult] = []
    for comment_id in comment_ids:
        try:
            outcomes.append(DecisionResult(comment_id, step(comment_id)))
        except errors.CodedError as error:
            text = error_texts.sentence(error)
            outcomes.append(DecisionResult(comment_id, None, error.code, text))
    return outcomes


def _by_author(site: str, author: str, status: Status) -> list[str]:
    """Return the ids of comments of an author, or of linked ids, with a given status."""
    ids: list[str] = []
    # An empty author id has no ids: it would match imported comments, which may lack an author id.
    for one in author_links.person(site, author) if site else []:
        where = (("site", "=", site), ("author_id", "=", one), ("status", "=", status.value))
        ids += _keys(where)
    return ids[:MOST_AT_ONCE]


def _keys(where: tuple[tuple[str, str, object], ...]) -> list[str]:
    return reads.names("Comment", where, limit=MOST_AT_ONCE)
