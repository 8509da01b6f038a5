"""The calls of `/api/v1` for moderators in a thread, with the token of a moderation session.

The calls accept only this kind of token (`moderator_callers`). These calls offer less than the
admin console does: listing a thread's pending comments, deciding about comments, banning and
linking their authors, and posting as staff.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Literal

import flask
import msgspec

from comments.accounts import moderation_sessions
from comments.accounts.links import window_codes
from comments.domain import presentation, records
from comments.domain.moderation.reasons import HoldReason
from comments.domain.records import Status, Verb
from comments.limits.site_request import SiteRequest
from comments.moderation import bans, decisions, review_queue
from comments.moderation.policy import author_links, policy_changes
from comments.posting import new_comment
from comments.sites import site_settings
from comments.web.api import comment_calls, comment_shapes
from comments.web.api.callers import api_callers, moderator_callers
from comments.web.http import context, responses
from comments.web.http.decode import json_bodies, parameters, preconditions, query_strings

blueprint = moderator_callers.blueprint("moderator")


class ModerationCode(parameters.Request, frozen=True):
    """The verifier of a page, and the code from the window that granted a moderation session."""

    verifier: Annotated[str, msgspec.Meta(min_length=43, max_length=128)]
    code: Annotated[str, msgspec.Meta(min_length=1, max_length=40)]


class NewDecision(parameters.Request, frozen=True):
    """A moderator's decision about a comment, with a reason for other moderators."""

    verb: Literal["approve", "reject", "spam", "hide", "restore", "pin", "unpin"]
    reason: str = ""


class NewBan(parameters.Request, frozen=True):
    """A ban of a comment's author, for a number of days or, if that is null, permanently."""

    days: Annotated[int, msgspec.Meta(ge=1, le=3650)] | None = None
    reason: str = ""


class AuthorLinksQuery(parameters.Request, frozen=True):
    """An author id, or the id of one of the author's comments."""

    author: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class AuthorPair(AuthorLinksQuery, frozen=True):
    """Two authors, each an author id or the id of a comment, with a reason for moderators."""

    other: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    reason: str = ""


class ModeratorToken(msgspec.Struct, frozen=True):
    """A moderator's token for one site's comments, its expiry time, and the moderator's name."""

    token: str
    expires: datetime
    name: str


class EndedModeration(msgspec.Struct, frozen=True):
    """Confirms that the token is no longer valid."""

    status: Literal["ended"] = "ended"


class ModeratedComment(msgspec.Struct, frozen=True):
    """A comment as moderators see it.

    `status` is the stored status. `rule` says what gave the comment its status, such as `policy`,
    `reports` or `rule:` with a rule's id, and `reason` explains this in English; both may be empty.
    `reasons` contains the same explanation as codes with parameters, for translations; it is empty
    if a person or a classifier wrote `reason`. `sort_hash` is the comment's place in the thread:
    sorting comments by `sort_hash` puts them in reading order.
    """

    comment: presentation.PublicComment
    status: records.Status
    rule: str
    reason: str
    reasons: tuple[HoldReason, ...]
    sort_hash: str


class HeldComments(msgspec.Struct, frozen=True):
    """The pending comments of a thread, in reading order.

    `more` tells whether there are further pending comments; only the admin console lists them.
    """

    comments: list[ModeratedComment]
    more: bool


class BannedAuthor(msgspec.Struct, frozen=True):
    """Confirms that a comment's author was banned, or that the ban was lifted."""

    status: Literal["banned", "unbanned"]


class PersonLink(msgspec.Struct, frozen=True):
    """Why two author ids are one person: a moderator's `link`, or a reader's `claim`.

    An entry that is `refused` has only one id: claims of this imported author are refused.
    """

    authors: tuple[str, ...]
    kind: Literal["claim", "link", "refused"]
    since: datetime | None


class Person(msgspec.Struct, frozen=True):
    """The author ids of a person, beginning with the given one, and the links between them."""

    authors: list[str]
    links: list[PersonLink]


@blueprint.post("/sites/<site:site_id>/moderation/session")
def begin_moderation(site_id: str) -> flask.Response:
    """Exchange a verifier and the code from the window for a token."""
    query_strings.read(parameters.NoQuery)
    sent = json_bodies.read(ModerationCode)
    begun = moderation_sessions.begin(
        window_codes.PresentedCode(sent.verifier, sent.code),
        site_id,
        flask.request.headers.get("Origin"),
        secret=context.settings().secret,
        now=context.now(),
    )
    session = begun.session
    shown = ModeratorToken(begun.token, session.expires, session.account.name)
    return responses.personal(shown)


@blueprint.delete("/sites/<site:site_id>/moderation/session")
def end_moderation(site_id: str) -> flask.Response:  # noqa: ARG001 - the blueprint reads it
    """End the token's session."""
    query_strings.read(parameters.NoQuery)
    moderation_sessions.end(moderator_callers.token(), context.settings().secret)
    return responses.personal(EndedModeration())


@blueprint.get("/sites/<site:site_id>/moderation/comments")
def list_pending(site_id: str) -> flask.Response:
    """List the pending comments of a thread."""
    site = site_settings.get(site_id)
    thread, _ = query_strings.read_thread(parameters.NoQuery, site)
    cases, more = review_queue.pending_cases(records.ThreadName(site.id, thread))
    shown = HeldComments([_moderated_comment(case) for case in cases], more)
    return responses.personal(shown)


@blueprint.post("/sites/<site:site_id>/moderation/comments")
def post_as_staff(site_id: str) -> flask.Response:  # noqa: ARG001 - same
    """Post a comment as the moderator. The answer contains no token for changing the comment."""
    request: SiteRequest = flask.g.asked
    session = moderator_callers.current()
    speaker = api_callers.caller_of_account(session.account, session.site)
    submission = comment_calls.submission(request, speaker)
    comment = new_comment.post(submission, request).comment
    shown = comment_shapes.PostedComment(presentation.author_view(comment, 0))
    is_held = shown.comment.status is presentation.Shown.PENDING
    return responses.private(responses.of_comment(shown, comment.revision, 202 if is_held else 201))


@blueprint.post("/comments/<comment:comment_id>/decision")
def decide(comment_id: str) -> flask.Response:
    """Decide about a comment, with the same checks and audit log as in the admin console."""
    query_strings.read(parameters.NoQuery)
    session, revision = moderator_callers.current(), preconditions.revision()
    sent = json_bodies.read(NewDecision)
    decisions.decide(
        session.site,
        comment_id,
        Verb(sent.verb),
        session.account.actor,
        now=context.now(),
        reason=sent.reason.strip(),
        revision=revision,
    )
    case = decisions.case(session.site, comment_id)
    return responses.private(responses.of_comment(_moderated_comment(case), case.comment.revision))


@blueprint.route("/comments/<comment:comment_id>/ban", methods=["PUT"])
def ban_author(comment_id: str) -> flask.Response:
    """Ban the author of a comment.

    Networks and mailboxes can only be banned in the admin console.
    """
    query_strings.read(parameters.NoQuery)
    session, sent = moderator_callers.current(), json_bodies.read(NewBan)
    author, now = decisions.case(session.site, comment_id).comment.author.id, context.now()
    bans.ban(
        session.site,
        author,
        bans.BanScope(comment=comment_id),
        session.account.actor,
        secret=context.settings().secret,
        now=now,
        until=None if sent.days is None else now + timedelta(days=sent.days),
        reason=sent.reason.strip(),
    )
    return responses.personal(BannedAuthor("banned"))


@blueprint.delete("/comments/<comment:comment_id>/ban")
def unban_author(comment_id: str) -> flask.Response:
    """Lift the ban of a comment's author."""
    query_strings.read(parameters.NoQuery)
    session = moderator_callers.current()
    author = decisions.case(session.site, comment_id).comment.author.id
    policy_changes.unban(session.site, author, session.account.actor, now=context.now())
    return responses.personal(BannedAuthor("unbanned"))


@blueprint.get("/sites/<site:site_id>/moderation/author-links")
def list_author_links(site_id: str) -> flask.Response:
    """List the author ids of a person and the links between them."""
    sent = query_strings.read(AuthorLinksQuery)
    return _person(site_id, decisions.author_id(site_id, sent.author))


@blueprint.put("/sites/<site:site_id>/moderation/author-links")
def link_authors(site_id: str) -> flask.Response:
    """Record that two authors are one person."""
    query_strings.read(parameters.NoQuery)
    return _change_links(author_links.link, site_id, json_bodies.read(AuthorPair))


@blueprint.delete("/sites/<site:site_id>/moderation/author-links")
def unlink_authors(site_id: str) -> flask.Response:
    """End the link between two authors; if it is a claim, refuse further ones."""
    return _change_links(author_links.unlink, site_id, query_strings.read(AuthorPair))


def _change_links(change: Callable[..., None], site_id: str, sent: AuthorPair) -> flask.Response:
    one, other = (decisions.author_id(site_id, given) for given in (sent.author, sent.other))
    actor = moderator_callers.current().account.actor
    change(site_id, one, other, actor, now=context.now(), reason=sent.reason.strip())
    return _person(site_id, one)


def _person(site_id: str, author: str) -> flask.Response:
    links = author_links.of_people(site_id, [author])
    shown = [PersonLink(link.authors, link.kind, link.since) for link in links]
    return responses.personal(Person(author_links.person(site_id, author, links), shown))


def _moderated_comment(case: records.Case) -> ModeratedComment:
    shown = presentation.comment(case.comment)
    if case.comment.status is Status.PENDING:
        # A comment's public form has a text only if the comment is approved.
        approved = msgspec.structs.replace(case.comment, status=Status.APPROVED)
        pending = {"status": presentation.Shown.PENDING}
        shown = msgspec.structs.replace(presentation.comment(approved), **pending)
    return ModeratedComment(
        shown, case.comment.status, case.rule, case.why, case.reasons, case.comment.sort_hash
    )
