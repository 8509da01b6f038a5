"""What advisers said of a comment, and what follows from it for them.

Owns the kind Advice, one row for each comment that an adviser said something of:

    Advice    key: comment id; `said` is JSON: {asked, stands, of: {adviser's name: Entry}}

Entries are about the text that came with revision `admin_queries`. `stands` is the revision that
the comment had when an opinion changed it last: what is there by then was decided by opinions
alone. Whatever else changed since, an edit or a moderator, has the last word (`applies`).

Questions are messages (`messages`), made from the events of new texts by the commit that notes
these as done, and told by `classifier_requests`. A moderator's decision that contradicts Akismet is
told to it by a message too, made by the commit of the decision.

What must stay true: a row holds verdicts and reasons, nothing of the sender, and goes with the
text: it is deleted when the comment is erased.
"""

import enum
from collections.abc import Sequence
from datetime import datetime

import msgspec

from comments.domain import classifier_verdicts, records
from comments.domain.records import Status
from comments.events import message_queue, outbox
from comments.store import ownership, reads
from comments.store.models import comment_rows, event_rows, moderation_rows

_OWNER = "classifier_answers"
CHANNEL = "opinion"
ASKED_OF = frozenset({outbox.Kind.POSTED, outbox.Kind.EDITED})
ASKED_ABOUT = frozenset({Status.APPROVED, Status.PENDING})
# What a status is in Akismet's words.
_CORRECTIONS = {Status.APPROVED: "ham", Status.SPAM: "spam"}
_KNOWN = {classifier_verdicts.Verdict.APPROVE: "ham", classifier_verdicts.Verdict.SPAM: "spam"}


class State(enum.StrEnum):
    """How far an adviser is with a text. Stored as text."""

    SAID = "said"
    LATER = "later"  # he was asked, and has still to say
    FAILED = "failed"  # nobody could ask him


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an adviser said of a text, when, and why; or why he could not be asked.

    `told` is what he believes of it since a moderator corrected him.
    """

    state: State
    at: datetime
    verdict: classifier_verdicts.Verdict | None = None
    reason: str = ""
    told: str = ""


class Said(msgspec.Struct, frozen=True):
    """What was said of a comment's text, by adviser."""

    asked: int = 0
    stands: int = 0
    of: dict[str, Entry] = {}


def queue(site: str, name: str) -> str:
    """The queue of questions to an adviser of a site."""
    return message_queue.queue(CHANNEL, f"{site}/{name}")


def from_events(events: Sequence[outbox.Event]) -> ownership.Writes:
    """The questions about new texts, in the transaction that notes their events as done."""
    rows: list[event_rows.Message] = []
    for event in events:
        new = event.changes[0].new if event.changes else None
        if event.detail and new is not None and new.status in ASKED_ABOUT:
            asked = classifier_verdicts.decode_asked(event.detail)
            revision = int(event.id.partition(".")[2])
            for name in asked.of:
                sender = asked.sender if name == classifier_verdicts.AKISMET else ""
                question = classifier_verdicts.encode(
                    classifier_verdicts.Question(revision, sender)
                )
                rows += message_queue.made(event.id, [queue(new.site, name)], question, at=event.at)
    return message_queue.writes(rows)


def erased(events: Sequence[outbox.Event]) -> ownership.Writes:
    """Delete what was said of comments that were erased, in the transaction of their events."""
    keys = [moderation_rows.advice_key(event.comment) for event in events]
    found = [row.key for row in reads.get_multi(keys) if row is not None]
    return ownership.Writes(_OWNER, delete=tuple(found))


def read(row: moderation_rows.Advice | None) -> Said:
    """What a row says; nothing without one."""
    return Said() if row is None else msgspec.json.decode(row.said, type=Said)


def of(comment_ids: Sequence[str]) -> dict[str, Said]:
    """What was said of those comments of which something was."""
    rows = reads.get_multi([moderation_rows.advice_key(each) for each in comment_ids])
    return {row.key.id(): read(row) for row in rows if row is not None}


def waits(comment_id: str) -> bool:
    """Whether a comment is held for opinions, and for nothing else."""
    row = reads.get(comment_rows.comment_key(comment_id))
    return bool(row and classifier_verdicts.awaited(row.rule or ""))


def applies(said: Said, comment: records.Comment, revision: int) -> bool:
    """Whether an opinion about the text of a revision still has a say: nobody else changed it."""
    return comment.has_text_of(revision) or (
        said.asked == revision and comment.has_text_of(said.stands)
    )


def with_entry(said: Said, name: str, entry: Entry, revision: int) -> Said:
    """What was said of the text of a revision, with one more entry; others of it stay."""
    if said.asked != revision:
        return Said(revision, revision, {name: entry})
    return Said(revision, said.stands, {**said.of, name: entry})


def written(comment_id: str, said: Said) -> ownership.Writes:
    """Store what was said of a comment."""
    text = msgspec.json.encode(said).decode()
    row = moderation_rows.Advice(key=moderation_rows.advice_key(comment_id), said=text)
    return ownership.Writes(_OWNER, put=(row,))


def corrections(
    comment: records.Comment, event: str, *, now: datetime
) -> tuple[ownership.Writes, ...]:
    """Tell Akismet where a moderator sees a text otherwise, in the transaction of his decision.

    Only of a text that it was asked about, and each change of mind once.
    """
    means = _CORRECTIONS.get(comment.status)
    row = reads.get(moderation_rows.advice_key(comment.id)) if means and event else None
    said = read(row)
    entry = said.of.get(classifier_verdicts.AKISMET)
    if means is None or entry is None or entry.verdict is None:
        return ()
    was_edited_since = comment.edited is not None and comment.edited > entry.at
    if was_edited_since or means == (entry.told or _KNOWN.get(entry.verdict)):
        return ()
    told = msgspec.structs.replace(entry, told=means)
    after = Said(said.asked, said.stands, {**said.of, classifier_verdicts.AKISMET: told})
    question = classifier_verdicts.encode(
        classifier_verdicts.Question(said.asked, correction=means)
    )
    made = message_queue.made(
        event, [queue(comment.site, classifier_verdicts.AKISMET)], question, at=now
    )
    return written(comment.id, after), message_queue.writes(made)
