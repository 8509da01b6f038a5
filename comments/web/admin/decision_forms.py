"""Decisions as forms send them, and what became of each.

    act       a verb, for what is selected; or "verb:id:revision", the button of one comment
    c.{id}    a selected comment, and the revision that was seen of it
    reason    a moderator's own words

Every comment is decided in a transaction of its own, and only if it still is what was seen. What
somebody else decided first stands, and the outcome says so. An outcome holds what takes it back.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import flask
import msgspec

from comments import errors
from comments.domain import records
from comments.domain.records import Status, Verb
from comments.moderation import decisions, review_queue
from comments.store.models import comment_rows
from comments.web.admin import site_visit
from comments.web.http.decode import forms

_CHOICE = re.compile(r"c\.([a-z2-7]{26})")
_REVISION = re.compile(r"[1-9][0-9]{0,8}")
_JSON = "application/json"
_BECOMES = {
    Verb.APPROVE: Status.APPROVED,
    Verb.REJECT: Status.REJECTED,
    Verb.SPAM: Status.SPAM,
    Verb.HIDE: Status.HIDDEN,
    Verb.HOLD: Status.PENDING,
}
_UNDONE_BY = dict.fromkeys(_BECOMES, Verb.RESTORE) | {
    Verb.PIN: Verb.UNPIN,
    Verb.UNPIN: Verb.PIN,
}
WORDS = {
    Verb.APPROVE: "Approve",
    Verb.REJECT: "Reject",
    Verb.SPAM: "Spam",
    Verb.HIDE: "Hide",
    Verb.HOLD: "Hold",
    Verb.RESTORE: "Restore",
    Verb.PIN: "Pin",
    Verb.UNPIN: "Unpin",
}
BULK = (Verb.APPROVE, Verb.REJECT, Verb.SPAM, Verb.HIDE, Verb.HOLD, Verb.RESTORE)
_PINS = {Verb.PIN: True, Verb.UNPIN: False}
_REFUSED = {
    "comment-retracted": "its author took it back",
    "nothing-to-restore": "there is nothing to undo any more",
    "comment-not-shown": "readers do not see it",
    "comment-not-found": "there is no such comment here",
    "overloaded": "the store did not answer; try again",
}


class Choice(NamedTuple):
    """A comment, and the revision that was seen of it."""

    id: str
    revision: int


class Order(NamedTuple):
    """What a form asks for."""

    verb: Verb
    choices: tuple[Choice, ...]
    reason: str


class Outcome(msgspec.Struct, frozen=True):
    """What became of one comment: how it stands now, in words, and what takes that back.

    `revision` is what it is now. `undo` is empty where nothing was done.
    """

    id: str
    author: str
    said: str
    is_done: bool
    status: str = ""
    revision: int = 0
    undo: str = ""
    is_pinned: bool = False


class Report(msgspec.Struct, frozen=True):
    """What became of what a form asked for, in the order of the form."""

    verb: str
    outcomes: tuple[Outcome, ...]

    @property
    def undo(self) -> str:
        """The verb that takes back all that was done; empty where nothing was."""
        return next((each.undo for each in self.outcomes if each.undo), "")

    @property
    def summary(self) -> str:
        """The report in one line."""
        done = sum(each.is_done for each in self.outcomes)
        failed = len(self.outcomes) - done
        parts = [f"{done} done"] * bool(done) + [f"{failed} not"] * bool(failed)
        return f"{WORDS[Verb(self.verb)]}: {', '.join(parts)}."


def verbs_of(case: records.Case) -> list[Verb]:
    """What may be done to a comment as it stands, the likeliest first."""
    said = case.comment
    if said.status is Status.RETRACTED:
        return []
    if said.status is Status.APPROVED:
        pin = Verb.UNPIN if said.pinned else Verb.PIN
        return [Verb.HIDE, Verb.REJECT, Verb.SPAM, Verb.HOLD, pin]
    others = [Verb.APPROVE, Verb.REJECT, Verb.SPAM]
    found = [verb for verb in others if _BECOMES[verb] is not said.status]
    return [*found, Verb.RESTORE] if case.stood else found


def taken(visit: site_visit.Visit, here: str = "") -> Report | flask.Response | None:
    """What the current request's form asks for, done; as JSON where a script asks. None for a GET.

    `here` is the one comment that a page is about, where it is about one.

    Raises:
        errors.BadInput: the form is none of ours; names the field.
        errors.NotFound: it names comments of other sites only, or none that is there.
    """
    if flask.request.method != "POST":
        return None
    order = read(forms.fields())
    if here and any(choice.id != here for choice in order.choices):
        raise errors.BadInput("act", "is about another comment")
    report = decide(visit, order, now=datetime.now(UTC))
    if flask.request.accept_mimetypes.best == _JSON:
        return flask.Response(msgspec.json.encode(report), content_type=_JSON)
    return report


def read(fields: Mapping[str, str]) -> Order:
    """What a form asks for.

    Raises:
        errors.BadInput: naming the field.
    """
    chosen: list[Choice] = []
    for name, value in fields.items():
        if found := _CHOICE.fullmatch(name):
            chosen.append(Choice(found[1], _revision(name, value)))
        elif name not in {"act", "reason"}:
            raise errors.BadInput(name, "is not a field of this form")
    word, *one = fields.get("act", "").split(":")
    if word not in Verb.__members__.values():
        raise errors.BadInput("act", "is not something to do")
    choices = [_named(one)] if one else chosen
    if len(choices) > decisions.MOST_AT_ONCE:
        raise errors.BadInput("c", f"more than {decisions.MOST_AT_ONCE}")
    if not choices:
        raise errors.BadInput("c", "nothing is selected")
    return Order(Verb(word), tuple(choices), fields.get("reason", "").strip())


def _named(one: Sequence[str]) -> Choice:
    """The comment that a button of its own names."""
    if len(one) != 2 or not comment_rows.is_comment_id(one[0]):  # noqa: PLR2004 - id and revision
        raise errors.BadInput("act", "names no comment")
    return Choice(one[0], _revision("act", one[1]))


def decide(visit: site_visit.Visit, order: Order, *, now: datetime) -> Report:
    """Do what a form asks for, one comment after the other.

    Raises:
        errors.NotFound: the site has none of them.
        errors.BadInput: the reason is no short line.
    """
    cases = _own(visit.site, order.choices)
    if not cases:
        raise errors.NotFound("comment", order.choices[0].id)
    outcomes = (_decided(visit, order, choice, cases, now) for choice in order.choices)
    return Report(order.verb, tuple(outcomes))


def _own(site: records.Site, choices: Sequence[Choice]) -> dict[str, records.Case]:
    found = review_queue.cases([choice.id for choice in choices])
    return {name: case for name, case in found.items() if case.comment.site == site.id}


def _decided(
    visit: site_visit.Visit,
    order: Order,
    choice: Choice,
    cases: Mapping[str, records.Case],
    now: datetime,
) -> Outcome:
    case = cases.get(choice.id)
    author = "" if case is None else case.comment.author.name
    if case is not None and _is_so(order.verb, case.comment):
        return _done(case.comment, "was so already", "")
    try:
        done = decisions.decide(
            visit.site.id, choice.id, order.verb, visit.account.actor,
            now=now, reason=order.reason, revision=choice.revision,
        )  # fmt: skip
    except errors.RevisionMismatch:
        return _overtaken(visit.site, choice, author)
    except errors.BadInput:
        raise
    except errors.FlatthreadError as error:
        return Outcome(choice.id, author, _REFUSED.get(error.code, error.message), is_done=False)
    return _done(done, "", _UNDONE_BY.get(order.verb, ""))


def _is_so(verb: Verb, comment: records.Comment) -> bool:
    if verb in _PINS:
        return comment.pinned is _PINS[verb]
    return _BECOMES.get(verb) is comment.status


def _done(comment: records.Comment, said: str, undo: str) -> Outcome:
    stands = f"{comment.status}, pinned" if comment.pinned else f"{comment.status}"
    words = f"{stands}; {said}" if said else stands
    return Outcome(
        comment.id, comment.author.name, words, is_done=True, status=comment.status,
        revision=comment.revision, undo=undo, is_pinned=comment.pinned,
    )  # fmt: skip


def _overtaken(site: records.Site, choice: Choice, author: str) -> Outcome:
    """What is said of a comment that is not what was seen: how it stands now, untouched."""
    now = _own(site, [choice]).get(choice.id)
    if now is None:
        return Outcome(choice.id, author, _REFUSED["comment-not-found"], is_done=False)
    said = f"left as it is, {now.comment.status}: somebody changed it after you looked"
    return Outcome(
        choice.id, author, said, is_done=False, status=now.comment.status,
        revision=now.comment.revision, is_pinned=now.comment.pinned,
    )  # fmt: skip


def _revision(field: str, text: str) -> int:
    if not _REVISION.fullmatch(text):
        raise errors.BadInput(field, "names no revision")
    return int(text)
