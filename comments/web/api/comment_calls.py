"""The calls of `/api/v1` that list, post, edit and vote.

Each view decodes the request, calls other packages, and builds the answer. Every call makes these
checks in this order: the site exists, pages of this origin may write to the site, the token is
valid, and the body is JSON of the expected type. Read calls never create entities.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Literal

import flask
import msgspec

from comments import errors
from comments.domain import presentation, records
from comments.domain.ids import thread_ids
from comments.limits import budgets, proof_policy
from comments.limits.site_request import SiteRequest
from comments.notifications import double_opt_in
from comments.posting import admission, cast_vote, new_comment, own_comment, previews
from comments.reading import full_thread, listings, thread_pages
from comments.sites import mail_server, site_settings
from comments.threads import thread_aliases
from comments.transfer.moves import declared_moves
from comments.tree.counters import leaderboard, totals
from comments.tree.lists import listed_comments, slugs
from comments.web.api import category_calls, comment_shapes, list_queries, moderation_calls
from comments.web.api.callers import api_callers
from comments.web.http import context, cors, problems, responses
from comments.web.http.decode import json_bodies, parameters, preconditions, query_strings

blueprint = flask.Blueprint("api", __name__, url_prefix="/api/v1")
blueprint.register_blueprint(moderation_calls.blueprint)
blueprint.register_blueprint(category_calls.blueprint)

_READS = {"GET", "HEAD"}
# Calls that are refused while a site is read-only because its budget is used up. `post_comment` is
# not in this list. `post_comment` makes its own check, because a retry must succeed if its comment
# is already stored.
_CLOSED = {"api.edit_comment", "api.vote", "api.subscribe", "following.follow"}
_OWN = {"api.edit_comment", "api.retract_comment", "api.withdraw_vote"}


@blueprint.before_request
def admit() -> flask.Response | None:
    """Answer preflights, and refuse writes from pages whose origin is not registered."""
    request = context.request()
    path, endpoint = request.view_args or {}, request.endpoint
    if request.method == "OPTIONS":
        return cors.preflight(_site_asked_about(path))
    if request.method in _READS:
        return None
    if "site_id" not in path:
        site = api_callers.site_of(path["comment_id"], is_own=endpoint in _OWN)
    elif endpoint == "api.count_comments":
        site = site_settings.get(path["site_id"])  # This POST changes nothing.
    else:
        site = site_settings.current(path["site_id"])
    request.environ[context.SITE] = site.id
    cors.check(site)
    asked = flask.g.asked = context.request_to(site)
    if endpoint in _CLOSED:
        budgets.check(site, now=asked.now)
    return None


@blueprint.get("/sites/<site:site_id>/comments")
def list_comments(site_id: str) -> flask.Response:
    """List a page of a thread, the whole thread with limit=all, or the comments of a category."""
    site = site_settings.get(site_id)
    if "category" in flask.request.args:
        return category_calls.list_comments(site)
    thread, query = query_strings.read_thread(comment_shapes.ListQuery, site)
    secret = context.settings().secret
    if query.canonical and cors.is_on_own_page(site):
        declared_moves.note(site, thread, query.canonical, now=context.now())
    elif site.moves and flask.request.headers.get("Origin") in site.origins:
        declared_moves.note_answer(site, thread, flask.g.asked_thread, now=context.now())
    if not isinstance(query.limit, int):
        list_queries.refuse_beside_all(query)
        name = records.ThreadName(site.id, thread)
        return responses.whole(full_thread.WholeThread(name, secret), site)
    asked = list_queries.page_request(query, query.limit, secret)
    if address := query.around or query.slug:
        list_queries.refuse_beside_around(query)
        name = records.ThreadName(site.id, thread)
        around = thread_pages.Around(site.scheme, name, address, asked)
        return responses.listing(around, site)
    parent = query.parent or None
    order = query.order or list_queries.default_order(site, parent)
    return responses.listing(listings.source(site, thread, asked, order=order, parent=parent), site)


@blueprint.post("/sites/<site:site_id>/comments")
def post_comment(site_id: str) -> flask.Response:  # noqa: ARG001 - `admit` reads the site
    """Post a comment. Repeated requests with the same Idempotency-Key store only one comment."""
    request: SiteRequest = flask.g.asked
    speaker = api_callers.optional_caller(request.site)
    posted = new_comment.post(submission(request, speaker), request)
    comment = posted.comment
    if posted.is_authors:
        replies = 0 if posted.created else msgspec.UNSET
        speaker = speaker or api_callers.Speaker(comment.site, comment.author.id)
        token = speaker.token(request.settings, request.now)
        shown = comment_shapes.PostedComment(_own(comment, replies), *token)
    else:
        public = msgspec.structs.asdict(presentation.comment(comment))
        shown = comment_shapes.PostedComment(presentation.OwnComment(**public))
    is_held = shown.comment.status is presentation.Shown.PENDING
    response = responses.of_comment(shown, comment.revision, 202 if is_held else 201)
    response.headers["Location"] = f"{blueprint.url_prefix}/comments/{comment.id}"
    if not posted.created:
        response.headers["Idempotent-Replayed"] = "true"
    return response


@blueprint.get("/sites/<site:site_id>/challenge")
def challenge(site_id: str) -> flask.Response:
    """Create a challenge without storing anything.

    If a page's origin may not post, the page gets the refusal here. The page can read the response
    to this GET, but cannot learn why its browser did not send the post.
    """
    purpose = query_strings.read(comment_shapes.ChallengeQuery).purpose
    request = context.request_to(site_settings.get(site_id))
    cors.check(request.site)
    if purpose is proof_policy.ChallengePurpose.POST:
        return responses.fresh(admission.challenge(request))
    return responses.fresh(proof_policy.challenge(request, purpose))


@blueprint.get("/comments/<comment:comment_id>")
def show_comment(comment_id: str) -> flask.Response:
    """Return a comment with its ancestors.

    The ETag is the comment's revision, for If-Match. The answer is never 304, because the ancestors
    can change while the revision stays the same.
    """
    query_strings.read(parameters.NoQuery)
    comment, ancestors = listed_comments.with_ancestors(comment_id)
    site_settings.get(comment.site)
    return _with_ancestors(comment, ancestors)


def _with_ancestors(
    comment: records.Comment, ancestors: Sequence[records.Comment]
) -> flask.Response:
    shown = comment_shapes.OneComment(
        presentation.comment(comment), [presentation.comment(row) for row in ancestors]
    )
    return responses.of_comment(shown, comment.revision)


@blueprint.get("/sites/<site:site_id>/comment")
def find_comment(site_id: str) -> flask.Response:
    """Return the comment that has this slug, with its ancestors."""
    site = site_settings.get(site_id)
    thread, query = query_strings.read_thread(comment_shapes.SlugQuery, site)
    name = records.ThreadName(site.id, thread)
    return _with_ancestors(*slugs.with_ancestors(site.scheme, name, query.slug))


@blueprint.patch("/comments/<comment:comment_id>")
def edit_comment(comment_id: str) -> flask.Response:
    """Replace the text of the caller's own comment."""
    query_strings.read(parameters.NoQuery)
    request: SiteRequest = flask.g.asked
    speaker, revision = api_callers.current(), preconditions.revision()
    comment = own_comment.edit(
        comment_id,
        author_id=speaker.id,
        body=json_bodies.read(comment_shapes.NewBody).body,
        revision=revision,
        settings=request.settings,
        now=request.now,
        sender=request.sender,
        since=speaker.since,
        site=speaker.site,
    )
    return responses.of_comment(comment_shapes.ChangedComment(_own(comment)), comment.revision)


@blueprint.delete("/comments/<comment:comment_id>")
def retract_comment(comment_id: str) -> flask.Response:
    """Retract the caller's own comment."""
    query_strings.read(parameters.NoQuery)
    speaker, revision = api_callers.current(), preconditions.revision()
    comment = own_comment.retract(
        comment_id,
        author_id=speaker.id,
        revision=revision,
        now=flask.g.asked.now,
        site=speaker.site,
    )
    return responses.of_comment(
        comment_shapes.ChangedComment(presentation.author_view(comment)), comment.revision
    )


@blueprint.get("/comments/<comment:comment_id>/replies")
def list_replies(comment_id: str) -> flask.Response:
    """List a page of the comments below a comment, or all of them with limit=all."""
    query = query_strings.read(comment_shapes.RepliesQuery)
    secret = context.settings().secret
    if not isinstance(query.limit, int):
        list_queries.refuse_beside_all(query)
        below = full_thread.below(comment_id, secret)
        return responses.whole(below, site_settings.get(below.name.site))
    asked = thread_pages.PageRequest(query.limit, query.cursor or None, secret)
    source = listings.source_below(comment_id, asked)
    return responses.listing(source, site_settings.get(source.name.site))


@blueprint.get("/sites/<site:site_id>/subscription")
def offer_mail(site_id: str) -> flask.Response:
    """Tell whether this service sends mail."""
    site = site_settings.get(site_id)
    query_strings.read(parameters.NoQuery)
    sends_mail = mail_server.sends_mail_of(site, context.settings())
    return responses.fresh(comment_shapes.MailOffer(sends_mail))


@blueprint.route("/sites/<site:site_id>/subscription", methods=["PUT"])
def subscribe(site_id: str) -> flask.Response:
    """Mail a confirmation request for a subscription to a thread's new comments or to replies."""
    request: SiteRequest = flask.g.asked
    thread, _ = query_strings.read_thread(parameters.NoQuery, request.site)
    speaker = api_callers.optional_caller(request.site)
    sent = json_bodies.read(comment_shapes.NewSubscription)
    if not (sent.thread or sent.replies):
        raise errors.BadInput("thread", "nothing-to-subscribe")
    if sent.replies and speaker is None:
        raise problems.Unauthenticated("no-token")
    double_opt_in.request_confirmation(
        sent.email,
        request,
        thread=records.ThreadName(site_id, thread) if sent.thread else None,
        author=speaker.id if speaker else "",
        replies=sent.replies,
    )
    return responses.fresh(comment_shapes.ConfirmationRequested(), 202)


@blueprint.route("/comments/<comment:comment_id>/vote", methods=["PUT"])
def vote(comment_id: str) -> flask.Response:
    """Vote on a comment. A caller without a token must send a proof of work, and gets a token."""
    query_strings.read(parameters.NoQuery)
    request: SiteRequest = flask.g.asked
    key, sent = preconditions.idempotency_key(), json_bodies.read(comment_shapes.NewVote)
    if "Authorization" in flask.request.headers:
        return _cast_vote(comment_id, api_callers.current(), sent.value, request)
    voter = cast_vote.newcomer_id(comment_id, sent.proof, key, request)
    return _cast_vote(comment_id, api_callers.Speaker(request.site.id, voter), sent.value, request)


@blueprint.delete("/comments/<comment:comment_id>/vote")
def withdraw_vote(comment_id: str) -> flask.Response:
    """Withdraw the caller's vote."""
    query_strings.read(parameters.NoQuery)
    return _cast_vote(comment_id, api_callers.current(), 0, flask.g.asked)


@blueprint.get("/sites/<site:site_id>/authors")
def list_authors(site_id: str) -> flask.Response:
    """List the authors of a site, highest score first."""
    site, query = site_settings.get(site_id), query_strings.read(comment_shapes.AuthorsQuery)
    secret = context.settings().secret
    page = leaderboard.best(site.id, limit=query.limit, cursor=query.cursor or None, secret=secret)
    shown = [
        comment_shapes.RankedAuthor(
            presentation.PublicAuthor(entry.author.name, entry.author.website),
            entry.score,
            entry.comments,
        )
        for entry in page.authors
    ]
    return responses.cacheable(msgspec.json.encode(comment_shapes.AuthorPage(shown, page.cursor)))


@blueprint.post("/sites/<site:site_id>/preview")
def preview(site_id: str) -> flask.Response:  # noqa: ARG001 - same
    """Return the HTML that the service would store for a text."""
    query_strings.read(parameters.NoQuery)
    body = json_bodies.read(comment_shapes.NewBody).body
    return responses.fresh(comment_shapes.Preview(previews.render(body, flask.g.asked)))


@blueprint.post("/sites/<site:site_id>/counts")
def count_comments(site_id: str) -> flask.Response:
    """Count the listed comments of several threads and, on request, their followers.

    A name that cannot belong to a thread gets no numbers. Such a name is not an error: the names
    come from the links of a page, and one wrong link must not prevent counting the other threads.
    """
    query_strings.read(parameters.NoQuery)
    asked = json_bodies.read(comment_shapes.ThreadList)
    if len(asked.threads) + len(asked.pages) > comment_shapes.MAX_COUNTS:
        raise errors.BadInput("pages", "too-many-items", limit=comment_shapes.MAX_COUNTS)
    site = site_settings.get(site_id)
    named = [_thread_id(thread_ids.canonical_id, raw) for raw in asked.threads]
    page_id = functools.partial(thread_ids.page_id, site=site)
    named += [_thread_id(page_id, link) for link in asked.pages]
    known = [thread for thread in named if thread is not None]
    threads = thread_aliases.stored_ids(site, known)
    flask.g.translated_for = site

    def of_all(numbers: Sequence[int]) -> list[int | None]:
        left = iter(numbers)
        return [None if thread is None else next(left) for thread in named]

    if asked.followers:
        counts = totals.with_followers(site_id, threads)
        shown = comment_shapes.Counts(of_all(counts.listed), of_all(counts.followers))
        return responses.fresh(shown)
    return responses.fresh(comment_shapes.Counts(of_all(totals.listed_counts(site_id, threads))))


def _thread_id(canonical: Callable[[str], str], name: str) -> str | None:
    try:
        return canonical(name)
    except errors.BadInput:
        return None


def _own(
    comment: records.Comment, replies: int | msgspec.UnsetType = msgspec.UNSET
) -> presentation.OwnComment:
    """Return a comment for its author, with the time when its edit window ends."""
    request: SiteRequest = flask.g.asked
    until = own_comment.editable_until(comment, request.settings, request.now)
    return presentation.author_view(comment, replies, editable_until=until)


def submission(request: SiteRequest, speaker: api_callers.Speaker | None) -> admission.Submission:
    """Return the comment that a caller submits. Accounts always post under their own name."""
    thread, _ = query_strings.read_thread(parameters.NoQuery, request.site)
    key = preconditions.idempotency_key()
    sent = json_bodies.read(comment_shapes.NewComment)
    author = records.Author(sent.name, sent.website, sent.email)
    if speaker is not None:
        name = speaker.name or sent.name
        author = records.Author(name, sent.website, sent.email, speaker.id, speaker.is_staff)
    return admission.Submission(
        thread=thread,
        asked=flask.g.asked_thread,
        parent=sent.parent,
        author=author,
        body=sent.body,
        title=sent.title,
        url=sent.url,
        key=key,
        categories=tuple(sent.categories),
        since=speaker.since if speaker else None,
        proof=sent.proof,
        turnstile=sent.turnstile,
        trap=sent.subject,
        is_from_test_page=cors.is_test_page(request.site, thread),
    )


def _cast_vote(
    comment_id: str, speaker: api_callers.Speaker, value: Literal[1, 0, -1], request: SiteRequest
) -> flask.Response:
    cast_vote.vote(comment_id, speaker.id, value, request)
    token = speaker.token(request.settings, request.now)
    return responses.fresh(comment_shapes.CastVote(comment_id, value, *token))


def _site_asked_about(path: dict[str, str]) -> records.Site | None:
    try:
        if "comment_id" in path:
            # Authors may edit and delete their held comments as well.
            return api_callers.site_of_comment(path["comment_id"])
        return site_settings.get(path["site_id"]) if "site_id" in path else None
    except errors.NotFound:
        return None
