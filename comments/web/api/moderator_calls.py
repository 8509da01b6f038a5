"""The calls of `/api/v1` for moderators in a thread, with the token of a moderation session.

The calls accept only this kind of token (`moderator_callers`). They offer less than the admin
console does: listing a thread's pending comments, deciding about comments, banning their authors,
and posting as staff.
"""

from datetime import UTC, datetime, timedelta

import flask
import msgspec

from comments.accounts import moderation_sessions
from comments.accounts.links import window_codes
from comments.domain import presentation, records
from comments.domain.records import Status, Verb
from comments.limits.site_request import SiteRequest
from comments.moderation import bans, decisions, review_queue
from comments.moderation.policy import policy_changes
from comments.posting import new_comment
from comments.sites import site_settings
from comments.web.api import comment_calls
from comments.web.api.callers import api_callers, moderator_callers
from comments.web.http import context, response_shapes, responses
from comments.web.http.decode import json_bodies, preconditions, query_strings, request_shapes

blueprint = moderator_callers.blueprint("moderator")


@blueprint.post("/sites/<site:site_id>/moderation/session")
def begin_moderation(site_id: str) -> flask.Response:
    """Exchange a verifier and the code from the window for a token."""
    query_strings.read(request_shapes.NoQuery)
    sent = json_bodies.read(request_shapes.ModerationCode)
    begun = moderation_sessions.begin(
        window_codes.PresentedCode(sent.verifier, sent.code),
        site_id,
        flask.request.headers.get("Origin"),
        secret=context.settings().secret,
        now=datetime.now(UTC),
    )
    session = begun.session
    shown = response_shapes.ModeratorToken(begun.token, session.expires, session.account.name)
    return responses.personal(shown)


@blueprint.delete("/sites/<site:site_id>/moderation/session")
def end_moderation(site_id: str) -> flask.Response:  # noqa: ARG001 - the blueprint reads it
    """End the token's session."""
    query_strings.read(request_shapes.NoQuery)
    moderation_sessions.end(moderator_callers.token(), context.settings().secret)
    return responses.personal(response_shapes.EndedModeration())


@blueprint.get("/sites/<site:site_id>/moderation/comments")
def list_pending(site_id: str) -> flask.Response:
    """List the pending comments of a thread."""
    site = site_settings.get(site_id)
    thread, _ = query_strings.read_thread(request_shapes.NoQuery, site)
    cases, more = review_queue.pending_cases(records.ThreadName(site.id, thread))
    shown = response_shapes.HeldComments([_moderated_comment(case) for case in cases], more)
    return responses.personal(shown)


@blueprint.post("/sites/<site:site_id>/moderation/comments")
def post_as_staff(site_id: str) -> flask.Response:  # noqa: ARG001 - same
    """Post a comment as the moderator. The answer contains no token for changing the comment."""
    request: SiteRequest = flask.g.asked
    session = moderator_callers.current()
    speaker = api_callers.caller_of_account(session.account, session.site)
    submission = comment_calls.submission(request, speaker)
    comment = new_comment.post(submission, request).comment
    shown = response_shapes.PostedComment(presentation.own(comment, 0))
    is_held = shown.comment.status is presentation.Shown.PENDING
    return responses.private(responses.of_comment(shown, comment.revision, 202 if is_held else 201))


@blueprint.post("/comments/<comment:comment_id>/decision")
def decide(comment_id: str) -> flask.Response:
    """Decide about a comment, with the same checks and audit log as in the admin console."""
    query_strings.read(request_shapes.NoQuery)
    session, revision = moderator_callers.current(), preconditions.revision()
    sent = json_bodies.read(request_shapes.NewDecision)
    decisions.decide(
        session.site,
        comment_id,
        Verb(sent.verb),
        session.account.actor,
        now=datetime.now(UTC),
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
    query_strings.read(request_shapes.NoQuery)
    session, sent = moderator_callers.current(), json_bodies.read(request_shapes.NewBan)
    author, now = decisions.case(session.site, comment_id).comment.author.id, datetime.now(UTC)
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
    return responses.personal(response_shapes.BannedAuthor("banned"))


@blueprint.delete("/comments/<comment:comment_id>/ban")
def unban_author(comment_id: str) -> flask.Response:
    """Lift the ban of a comment's author."""
    query_strings.read(request_shapes.NoQuery)
    session = moderator_callers.current()
    author = decisions.case(session.site, comment_id).comment.author.id
    policy_changes.unban(session.site, author, session.account.actor, now=datetime.now(UTC))
    return responses.personal(response_shapes.BannedAuthor("unbanned"))


def _moderated_comment(case: records.Case) -> response_shapes.ModeratedComment:
    shown = presentation.comment(case.comment)
    if case.comment.status is Status.PENDING:
        # A comment's public form has a text only if the comment is approved.
        approved = msgspec.structs.replace(case.comment, status=Status.APPROVED)
        pending = {"status": presentation.Shown.PENDING}
        shown = msgspec.structs.replace(presentation.comment(approved), **pending)
    return response_shapes.ModeratedComment(
        shown, case.comment.status, case.rule, case.why, case.reasons, case.comment.sort_hash
    )
