"""Store classifiers' answers about comments, and queue questions and corrections for classifiers.

This module owns the kind Advice. A comment has a row as soon as a classifier has answered a
question about it:

    Advice    key: comment id; `said` is JSON: {asked, stands, of: {classifier's name: Entry}}

All entries are about the text of revision `asked`. `stands` is the comment's revision after the
last change that a classifier caused. After a later edit or moderator's decision, the answers no
longer apply (`applies`).

Questions are messages (`message_queue`). The commit that completes a new text's event queues the
questions, and `classifier_requests` sends them. If a moderator's decision contradicts Akismet's
verdict, the commit of the decision queues a correction to Akismet.

A row contains no data about the sender, and is deleted when the comment is erased.
"""

import enum
from collections.abc import Sequence
from datetime import datetime

import msgspec

from comments.domain import decoders, records
from comments.domain.moderation import classifier_verdicts
from comments.domain.records import Status
from comments.events import message_queue, outbox
from comments.store import ownership, reads
from comments.store.models import comment_rows, event_rows, moderation_rows

_OWNER = "classifier_answers"
CHANNEL = "opinion"
ASKED_OF = frozenset({outbox.EventKind.POSTED, outbox.EventKind.EDITED})
ASKED_ABOUT = frozenset({Status.APPROVED, Status.PENDING})
# Akismet's names for a moderator's decisions and, in `_KNOWN`, for the verdicts of Akismet itself.
_CORRECTIONS = {Status.APPROVED: "ham", Status.SPAM: "spam"}
_KNOWN = {classifier_verdicts.Verdict.APPROVE: "ham", classifier_verdicts.Verdict.SPAM: "spam"}


class AnswerState(enum.StrEnum):
    """The state of a classifier's answer about a text; stored as text."""

    SAID = "said"
    LATER = "later"  # The classifier has received the question and will answer later.
    FAILED = "failed"  # The last attempt to ask the classifier failed.


class StoredAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A classifier's verdict about a text with its time and reason, or the reason for a failure.

    `told` is the last correction that was queued for the classifier.
    """

    state: AnswerState
    at: datetime
    verdict: classifier_verdicts.Verdict | None = None
    reason: str = ""
    told: str = ""


class StoredAnswers(msgspec.Struct, frozen=True):
    """All answers about a comment's text, keyed by classifier name."""

    asked: int = 0
    current: int = msgspec.field(default=0, name="stands")  # The name in stored rows
    of: dict[str, StoredAnswer] = {}


def queue(site: str, name: str) -> str:
    """Return the name of the question queue for a site's classifier."""
    return message_queue.queue(CHANNEL, f"{site}/{name}")


def question_writes(events: Sequence[outbox.Event]) -> ownership.Writes:
    """Queue the questions about new texts in the transaction that completes their events."""
    rows: list[event_rows.MessageRow] = []
    for event in events:
        new = event.changes[0].new if event.changes else None
        if event.detail and new is not None and new.status in ASKED_ABOUT:
            asked = classifier_verdicts.decode_asked(event.detail)
            revision = int(event.id.partition(".")[2])
            for name in asked.of:
                sender = asked.sender if name == classifier_verdicts.AKISMET else ""
                question = classifier_verdicts.encode(
                    classifier_verdicts.ClassifierQuestion(revision, sender)
                )
                rows += message_queue.new_rows(
                    event.id, [queue(new.site, name)], question, at=event.at
                )
    return message_queue.writes(rows)


def erasure_writes(events: Sequence[outbox.Event]) -> ownership.Writes:
    """Delete the answers about erased comments in the transaction that completes their events."""
    return deletion_writes([event.comment for event in events])


def deletion_writes(comment_ids: Sequence[str]) -> ownership.Writes:
    """Delete the answers about deleted or erased comments."""
    rows = reads.get_multi([moderation_rows.advice_key(comment_id) for comment_id in comment_ids])
    return ownership.Writes(_OWNER, delete=tuple(row.key for row in rows if row is not None))


def decode(row: moderation_rows.AdviceRow | None) -> StoredAnswers:
    """Decode a row; without a row, return an empty set of answers."""
    return StoredAnswers() if row is None else decoders.json(StoredAnswers).decode(row.said)


def of(comment_ids: Sequence[str]) -> dict[str, StoredAnswers]:
    """Return the answers about comments, keyed by comment id.

    Comments without a row are omitted.
    """
    rows = reads.get_multi([moderation_rows.advice_key(comment_id) for comment_id in comment_ids])
    return {row.key.id(): decode(row) for row in rows if row is not None}


def is_waiting(comment_id: str) -> bool:
    """Return whether a comment is held only until classifiers answer."""
    row = reads.get(comment_rows.comment_key(comment_id))
    return bool(row and classifier_verdicts.awaited_classifiers(row.rule or ""))


def applies(said: StoredAnswers, comment: records.Comment, revision: int) -> bool:
    """Return whether answers about the text of a revision still apply.

    Answers apply as long as only classifiers have changed the comment since that revision.
    """
    return comment.has_text_of(revision) or (
        said.asked == revision and comment.has_text_of(said.current)
    )


def with_entry(said: StoredAnswers, name: str, entry: StoredAnswer, revision: int) -> StoredAnswers:
    """Add an answer about the text of a revision, and drop answers about other revisions."""
    if said.asked != revision:
        return StoredAnswers(revision, revision, {name: entry})
    return StoredAnswers(revision, said.current, {**said.of, name: entry})


def answer_writes(comment_id: str, said: StoredAnswers) -> ownership.Writes:
    """Return the writes that store the answers about a comment."""
    text = msgspec.json.encode(said).decode()
    row = moderation_rows.AdviceRow(key=moderation_rows.advice_key(comment_id), said=text)
    return ownership.Writes(_OWNER, put=(row,))


def correction_writes(
    comment: records.Comment, event: str, *, now: datetime
) -> tuple[ownership.Writes, ...]:
    """Queue a correction if a moderator's decision contradicts Akismet's verdict.

    Call this function in the transaction of the decision. A correction is queued only if Akismet
    has judged the current text, and only if the correction differs from the last correction or, if
    there was none, from Akismet's verdict.
    """
    means = _CORRECTIONS.get(comment.status)
    row = reads.get(moderation_rows.advice_key(comment.id)) if means and event else None
    answers = decode(row)
    entry = answers.of.get(classifier_verdicts.AKISMET)
    if means is None or entry is None or entry.verdict is None:
        return ()
    was_edited_since = comment.edited is not None and comment.edited > entry.at
    if was_edited_since or means == (entry.told or _KNOWN.get(entry.verdict)):
        return ()
    corrected = msgspec.structs.replace(entry, told=means)
    after = StoredAnswers(
        answers.asked, answers.current, {**answers.of, classifier_verdicts.AKISMET: corrected}
    )
    question = classifier_verdicts.encode(
        classifier_verdicts.ClassifierQuestion(answers.asked, correction=means)
    )
    made = message_queue.new_rows(
        event, [queue(comment.site, classifier_verdicts.AKISMET)], question, at=now
    )
    return answer_writes(comment.id, after), message_queue.writes(made)
