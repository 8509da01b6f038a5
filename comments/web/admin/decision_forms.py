"""Moderation decisions from forms, and their outcomes.

    act       a verb for the selected comments, or "verb:id:revision" from one comment's button
    c.{id}    a selected comment; the value is the revision that the moderator saw
    reason    the moderator's reason

Each comment is decided in a separate transaction, and only if its revision is still the one that
the moderator saw. If the comment has changed, it keeps its status, and the outcome says so. Each
outcome names the verb that undoes the change.
"""

import re
from collections.abc import Mapping, Sequence
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
from comments.web.rendering import labels

_CHOICE = re.compile(r"c\.([a-z2-7]{26})")
_REVISION = re.compile(r"[1-9][0-9]{0,8}")
_JSON = "application/json"
_UNDONE_BY = dict.fromkeys(records.BECOMES, Verb.RESTORE) | {
    Verb.PIN: Verb.UNPIN,
    Verb.UNPIN: Verb.PIN,
}
BULK = (Verb.APPROVE, Verb.REJECT, Verb.SPAM, Verb.HIDE, Verb.HOLD, Verb.RESTORE)
_PINS = {Verb.PIN: True, Verb.UNPIN: False}


class ChosenComment(NamedTuple):
    """A comment, and the revision that the moderator saw."""

    id: str
    revision: int


class RequestedDecision(NamedTuple):
    """The decision that a form requests."""

    verb: Verb
    choices: tuple[ChosenComment, ...]
    reason: str


class CommentResult(msgspec.Struct, frozen=True):
    """The outcome for one comment. `said` is a sentence for moderators.

    `status`, `label` (the displayed status) and `revision` are the current values. `undo` is the
    verb that undoes the change; it is empty if nothing changed.
    """

    id: str
    author: str
    said: str
    is_done: bool
    status: str = ""
    label: str = ""
    revision: int = 0
    undo: str = ""
    is_pinned: bool = False


class FormResult(msgspec.Struct, frozen=True):
    """The outcomes for the comments of a form, in the order of the form.

    `pending` is the number of pending comments of the site afterwards.
    """

    verb: str
    outcomes: tuple[CommentResult, ...]
    pending: int

    @property
    def undo(self) -> str:
        """The verb that undoes all changes; empty if nothing changed."""
        return next((outcome.undo for outcome in self.outcomes if outcome.undo), "")

    @property
    def summary(self) -> str:
        """The outcomes as one line of text."""
        done, total = sum(outcome.is_done for outcome in self.outcomes), len(self.outcomes)
        action = labels.label("admin.verb", self.verb)
        return labels.text("admin.report-summary", action=action, done=done, total=total)


def verbs_of(case: records.Case) -> list[Verb]:
    """Return the verbs that apply to a comment, most likely first."""
    comment = case.comment
    if comment.status is Status.RETRACTED:
        return []
    if comment.status is Status.APPROVED:
        pin = Verb.UNPIN if comment.pinned else Verb.PIN
        return [Verb.HIDE, Verb.REJECT, Verb.SPAM, Verb.HOLD, pin]
    others = [Verb.APPROVE, Verb.REJECT, Verb.SPAM]
    verbs = [verb for verb in others if records.BECOMES[verb] is not comment.status]
    return [*verbs, Verb.RESTORE] if case.stood else verbs


def apply_posted(visit: site_visit.Visit, here: str = "") -> FormResult | flask.Response | None:
    """Apply the decision in the current request's form.

    For a GET, or to show the page after a refused form, return None; if a script sent the request,
    return JSON.

    On the page of a single comment, `here` is the comment's id.

    Raises:
        errors.BadInput: a field of the form is not valid.
        errors.NotFound: none of the comments in the form exist on this site.
    """
    if flask.request.method != "POST" or "refused" in flask.g:
        return None
    order = read(forms.fields())
    if here and any(choice.id != here for choice in order.choices):
        raise errors.BadInput("act", "bad-form")
    report = decide(visit, order)
    if flask.request.accept_mimetypes.best == _JSON:
        return flask.Response(msgspec.json.encode(report), content_type=_JSON)
    return report


def read(fields: Mapping[str, str]) -> RequestedDecision:
    """Parse the decision from the fields of a form.

    Raises:
        errors.BadInput: a field is unknown or not valid.
    """
    chosen: list[ChosenComment] = []
    for name, value in fields.items():
        if match := _CHOICE.fullmatch(name):
            chosen.append(ChosenComment(match[1], _revision(name, value)))
        elif name not in {"act", "reason"}:
            raise errors.BadInput(name, "unknown-field")
    word, *one = fields.get("act", "").split(":")
    if word not in Verb.__members__.values():
        raise errors.BadInput("act", "bad-form")
    choices = [_named_comment(one)] if one else chosen
    if len(choices) > decisions.MOST_AT_ONCE:
        raise errors.BadInput("c", "too-many-items", limit=decisions.MOST_AT_ONCE)
    if not choices:
        raise errors.BadInput("c", "nothing-selected")
    return RequestedDecision(Verb(word), tuple(choices), fields.get("reason", "").strip())


def _named_comment(one: Sequence[str]) -> ChosenComment:
    """Return the comment that the pressed button names, if it is for a single comment."""
    if len(one) != 2 or not comment_rows.is_comment_id(one[0]):  # noqa: PLR2004 - id and revision
        raise errors.BadInput("act", "bad-form")
    return ChosenComment(one[0], _revision("act", one[1]))


def decide(visit: site_visit.Visit, order: RequestedDecision) -> FormResult:
    """Apply the decision to the form's comments, one at a time.

    Raises:
        errors.NotFound: none of the comments exist on the site.
        errors.BadInput: the reason is too long or not one line.
    """
    cases = _own_cases(visit.site, order.choices)
    if not cases:
        raise errors.NotFound("comment", order.choices[0].id)
    outcomes = [_decide_one(visit, order, choice, cases) for choice in order.choices]
    pending = review_queue.count_pending(visit.site.id)
    return FormResult(order.verb, tuple(outcomes), pending)


def _own_cases(site: records.Site, choices: Sequence[ChosenComment]) -> dict[str, records.Case]:
    cases = review_queue.cases([choice.id for choice in choices])
    return {name: case for name, case in cases.items() if case.comment.site == site.id}


def _decide_one(
    visit: site_visit.Visit,
    order: RequestedDecision,
    choice: ChosenComment,
    cases: Mapping[str, records.Case],
) -> CommentResult:
    case = cases.get(choice.id)
    author = "" if case is None else case.comment.author.name
    if case is not None and _is_already(order.verb, case.comment):
        return _done_result(case.comment, "admin.outcome-unchanged", "")
    try:
        done = decisions.decide(
            visit.site.id, choice.id, order.verb, visit.account.actor,
            now=visit.now, reason=order.reason, revision=choice.revision,
        )  # fmt: skip
    except errors.RevisionMismatch:
        return _overtaken_result(visit.site, choice, author)
    except errors.BadInput:
        raise
    except errors.CodedError as error:
        return CommentResult(choice.id, author, _refusal(error), is_done=False)
    return _done_result(done, "admin.outcome", _UNDONE_BY.get(order.verb, ""))


def _is_already(verb: Verb, comment: records.Comment) -> bool:
    if verb in _PINS:
        return comment.pinned is _PINS[verb]
    return records.BECOMES.get(verb) is comment.status


def _refusal(error: errors.CodedError) -> str:
    return labels.label("admin.refused", error.code, otherwise=labels.problem(error))


def _done_result(comment: records.Comment, words: str, undo: str) -> CommentResult:
    shown = labels.status(comment)
    return CommentResult(
        comment.id, comment.author.name, labels.text(words, status=shown), is_done=True,
        status=comment.status, label=shown, revision=comment.revision, undo=undo,
        is_pinned=comment.pinned,
    )  # fmt: skip


def _overtaken_result(site: records.Site, choice: ChosenComment, author: str) -> CommentResult:
    """Return the outcome for a comment that has changed since the moderator saw it."""
    now = _own_cases(site, [choice]).get(choice.id)
    if now is None:
        return CommentResult(
            choice.id, author, labels.text("admin.refused-comment-not-found"), is_done=False
        )
    shown = labels.status(now.comment)
    text = labels.text("admin.outcome-overtaken", status=shown)
    return CommentResult(
        choice.id, author, text, is_done=False, status=now.comment.status, label=shown,
        revision=now.comment.revision, is_pinned=now.comment.pinned,
    )  # fmt: skip


def _revision(field: str, text: str) -> int:
    if not _REVISION.fullmatch(text):
        raise errors.BadInput(field, "bad-form")
    return int(text)
