"""The calls of `/api/v1`: each reads the request, asks row 3, and shapes the answer.

The order before every call: is the site there, may this page's origin write to it, is the caller
who he says, is the body JSON of our shape. Reading creates nothing, whatever is asked for.
"""

import functools
from datetime import UTC, datetime
from typing import Literal

import flask
import msgspec

from comments import (
    admission,
    authors,
    budgets,
    consent,
    counts,
    errors,
    floor,
    posting,
    previews,
    proving,
    public,
    reading,
    records,
    sites,
    threadids,
    usage,
    voting,
    whole,
)
from comments.web import (
    answers,
    bodies,
    context,
    cors,
    networks,
    openapi,
    preconditions,
    queries,
    responses,
    shapes,
    speakers,
    verdicts,
)
from comments.web import errors as web_errors

blueprint = flask.Blueprint("api", __name__, url_prefix="/api/v1")
blueprint.register_blueprint(verdicts.blueprint)

_READS = {"GET", "HEAD"}
# The site of a request, for who counts what it uses.
SITE = "flatthread.site"
# What readers cannot do where a budget is spent and the site is to be read only. To post says so
# itself, as a repeat of what was posted is no new post.
_CLOSED = {"api.edit_comment", "api.vote", "api.subscribe"}
_OWN = {"api.edit_comment", "api.retract_comment", "api.withdraw_vote"}


@blueprint.before_request
def admit() -> flask.Response | None:
    """Answer preflights; refuse pages elsewhere that write, or read what is personal."""
    path = flask.request.view_args or {}
    if flask.request.method == "OPTIONS":
        return cors.preflight(_site_asked_about(path))
    if flask.request.method not in _READS:
        flask.g.site = (
            sites.get(path["site_id"])
            if "site_id" in path
            else speakers.site_of(path["comment_id"], is_own=flask.request.endpoint in _OWN)
        )
        flask.request.environ[SITE] = flask.g.site.id
        cors.check(flask.g.site)
        if flask.request.endpoint in _CLOSED:
            budgets.check(flask.g.site, now=datetime.now(UTC))
    elif cors.is_personal():
        cors.check(sites.get(path["site_id"]))
    return None


@blueprint.get("/openapi.json")
def describe() -> flask.Response:
    """The OpenAPI document."""
    return answers.unchanging(_description())


@blueprint.get("/sites/<site:site_id>/comments")
def list_comments(site_id: str) -> flask.Response:
    """A page of a thread."""
    site = sites.get(site_id)
    thread, query = queries.read_thread(shapes.ListQuery, site)
    secret = context.settings().secret
    if not isinstance(query.limit, int):
        _refuse_beside_all(query)
        return answers.whole(whole.listing(records.ThreadName(site.id, thread), secret), site)
    asked = reading.Asked(query.limit, query.cursor or None, secret)

    def of(thread: str) -> reading.Listing:
        return _listing(site, thread, query, asked)

    return answers.page(of(thread), site, of=of)


@blueprint.post("/sites/<site:site_id>/comments")
def post_comment(site_id: str) -> flask.Response:
    """Post a comment, once however often it is sent with the same Idempotency-Key."""
    site = sites.get(site_id)
    thread, _ = queries.read_thread(shapes.NoQuery, site)
    key = preconditions.idempotency_key()
    speaker = speakers.on(site)
    sent = bodies.read(shapes.NewComment)
    settings = context.settings()
    draft = posting.Draft(
        site=site,
        thread=thread,
        parent=sent.parent,
        author=_author(sent, speaker),
        body=sent.body,
        title=sent.title,
        url=sent.url,
        key=key,
        categories=tuple(sent.categories),
        sender=networks.sender(context.settings(), flask.request),
        since=speaker.since if speaker else None,
    )
    now = datetime.now(UTC)
    prepared = posting.prepare(draft, settings=settings, now=now)
    entrant = admission.Entrant(
        network=draft.sender.network,
        author=speaker.id if speaker else "",
        is_member=speaker is not None and speaker.is_member,
        proof=sent.proof,
        turnstile=sent.turnstile,
        trap=sent.subject,
        repeats=key is not None,
    )
    admitted = admission.admit(entrant, prepared.draft, site, settings=settings, now=now)
    try:
        posted = posting.place(prepared, settings=settings, now=now, **admitted._asdict())
    except errors.Overloaded:
        usage.doubt(site.id, prepared.draft.id, now=now)
        raise
    if posted.created:
        usage.posted(site.id, posted.comment.id, now=now)
    if settings.on_app_engine:
        usage.flush_old()
    return _posted(posted, speaker, now)


@blueprint.get("/sites/<site:site_id>/challenge")
def challenge(site_id: str) -> flask.Response:
    """Make a challenge. Nothing is stored for it."""
    purpose = queries.read(shapes.ChallengeQuery).purpose
    site, settings = sites.get(site_id), context.settings()
    network, now = networks.of_request(settings, flask.request), datetime.now(UTC)
    if purpose is proving.Purpose.POST:
        made = admission.challenge(site, network, settings=settings, now=now)
    else:
        made = proving.challenge(site, purpose, network, settings=settings, now=now)
    return answers.fresh(made)


@blueprint.get("/comments/<comment:comment_id>")
def show_comment(comment_id: str) -> flask.Response:
    """One comment with those above it.

    Its tag is its revision, for If-Match. Never 304 by it: those above change without it.
    """
    queries.read(shapes.NoQuery)
    comment, ancestors = floor.comment(comment_id)
    shown = responses.OneComment(
        public.comment(comment), [public.comment(row) for row in ancestors]
    )
    return _at_revision(answers.fresh(shown), comment)


@blueprint.patch("/comments/<comment:comment_id>")
def edit_comment(comment_id: str) -> flask.Response:
    """Replace the text of one's own comment."""
    queries.read(shapes.NoQuery)
    speaker, revision = speakers.current(), preconditions.revision()
    comment = posting.edit(
        comment_id,
        author_id=speaker.id,
        body=bodies.read(shapes.NewBody).body,
        revision=revision,
        settings=context.settings(),
        now=datetime.now(UTC),
        sender=networks.sender(context.settings(), flask.request),
        since=speaker.since,
        site=speaker.site,
    )
    return _at_revision(answers.fresh(responses.ChangedComment(public.own(comment))), comment)


@blueprint.delete("/comments/<comment:comment_id>")
def retract_comment(comment_id: str) -> flask.Response:
    """Take one's own comment back."""
    queries.read(shapes.NoQuery)
    speaker, revision = speakers.current(), preconditions.revision()
    comment = posting.retract(
        comment_id,
        author_id=speaker.id,
        revision=revision,
        now=datetime.now(UTC),
        site=speaker.site,
    )
    return _at_revision(answers.fresh(responses.ChangedComment(public.comment(comment))), comment)


@blueprint.get("/comments/<comment:comment_id>/replies")
def list_replies(comment_id: str) -> flask.Response:
    """A page of everything below a comment."""
    query = queries.read(shapes.RepliesQuery)
    secret = context.settings().secret
    if not isinstance(query.limit, int):
        _refuse_beside_all(query)
        below = whole.listing_below(comment_id, secret)
        return answers.whole(below, sites.get(below.name.site))
    asked = reading.Asked(query.limit, query.cursor or None, secret)
    listing = reading.listing_below(comment_id, asked)
    return answers.page(listing, sites.get(listing.name.site))


@blueprint.get("/sites/<site:site_id>/subscription")
def offer_mail(site_id: str) -> flask.Response:
    """Whether mail can be asked for."""
    sites.get(site_id)
    queries.read(shapes.NoQuery)
    return answers.fresh(responses.MailOffer(context.settings().sends_mail))


@blueprint.route("/sites/<site:site_id>/subscription", methods=["PUT"])
def subscribe(site_id: str) -> flask.Response:
    """Ask an address whether it wants mail of new comments of a thread, or of replies."""
    site, settings = sites.get(site_id), context.settings()
    thread, _ = queries.read_thread(shapes.NoQuery, site)
    speaker = speakers.on(site)
    sent = bodies.read(shapes.NewSubscription)
    if not (sent.thread or sent.replies):
        raise errors.BadInput("thread", "is false, and so is replies: there is nothing to tell of")
    if sent.replies and speaker is None:
        raise web_errors.Unauthenticated(
            "replies takes the token that posting gave", code="no-token"
        )
    consent.ask(
        sent.email,
        site,
        thread=records.ThreadName(site.id, thread) if sent.thread else None,
        author=speaker.id if speaker else "",
        replies=sent.replies,
        network=networks.of_request(settings, flask.request),
        settings=settings,
        now=datetime.now(UTC),
    )
    return answers.fresh(responses.Asked(), 202)


@blueprint.route("/comments/<comment:comment_id>/vote", methods=["PUT"])
def vote(comment_id: str) -> flask.Response:
    """Vote for a comment or against it. Callers without a token prove work and are given one."""
    queries.read(shapes.NoQuery)
    settings, site = context.settings(), flask.g.site
    network = networks.of_request(settings, flask.request)
    key, sent = preconditions.idempotency_key(), bodies.read(shapes.NewVote)
    if "Authorization" in flask.request.headers:
        return _cast(comment_id, speakers.current(), network, sent.value)
    purpose, now = proving.Purpose.VOTE, datetime.now(UTC)
    made = proving.person(sent.proof, site, purpose, settings=settings, now=now)
    voter = made or voting.newcomer(comment_id, network, key, secret=settings.secret)
    return _cast(comment_id, speakers.Speaker(site.id, voter), network, sent.value)


@blueprint.delete("/comments/<comment:comment_id>/vote")
def withdraw_vote(comment_id: str) -> flask.Response:
    """Take the caller's vote back."""
    queries.read(shapes.NoQuery)
    network = networks.of_request(context.settings(), flask.request)
    return _cast(comment_id, speakers.current(), network, 0)


@blueprint.get("/sites/<site:site_id>/authors")
def list_authors(site_id: str) -> flask.Response:
    """The authors of a site, best first."""
    site, query = sites.get(site_id), queries.read(shapes.AuthorsQuery)
    secret = context.settings().secret
    found = authors.best(site.id, limit=query.limit, cursor=query.cursor or None, secret=secret)
    shown = [
        responses.RankedAuthor(
            public.Author(each.author.name, each.author.website), each.score, each.comments
        )
        for each in found.authors
    ]
    return answers.cacheable(msgspec.json.encode(responses.AuthorPage(shown, found.cursor)))


@blueprint.post("/sites/<site:site_id>/preview")
def preview(site_id: str) -> flask.Response:
    """Render a text as it would be stored."""
    queries.read(shapes.NoQuery)
    settings, now, site = context.settings(), datetime.now(UTC), sites.get(site_id)
    network, body = networks.of_request(settings, flask.request), bodies.read(shapes.NewBody).body
    html = previews.render(body, site, network, settings=settings, now=now)
    return answers.fresh(responses.Preview(html))


@blueprint.post("/sites/<site:site_id>/counts")
def count_comments(site_id: str) -> flask.Response:
    """How many comments readers see in each of many threads: one look-up of their counters."""
    queries.read(shapes.NoQuery)
    threads = [_canonical(raw) for raw in bodies.read(shapes.ThreadList).threads]
    return answers.fresh(responses.Counts(counts.listed(site_id, threads)))


@functools.cache
def _description() -> answers.Fixed:
    return answers.fixed(openapi.document())


def _listing(
    site: records.Site, thread: str, query: shapes.ListQuery, asked: reading.Asked
) -> reading.Listing:
    name = records.ThreadName(site.id, thread)
    if query.around:
        _refuse_beside_around(query)
        return reading.listing_around(site.scheme, name, query.around, asked)
    return reading.listing(
        site.scheme, name, asked, order=reading.Order(query.order), parent=query.parent or None
    )


def _refuse_beside_all(query: shapes.ListQuery | shapes.RepliesQuery) -> None:
    in_order = getattr(query, "order", shapes.Order.THREAD) is shapes.Order.THREAD
    if not in_order or any(getattr(query, name, None) for name in ("cursor", "parent", "around")):
        raise errors.BadInput("limit", "all goes with order=thread, and with nothing that chooses")


def _refuse_beside_around(query: shapes.ListQuery) -> None:
    beside = {
        "cursor": query.cursor,
        "parent": query.parent,
        "order": query.order is not shapes.Order.THREAD,
    }
    for name, given in beside.items():
        if given:
            raise errors.BadInput(name, "does not go with around")


def _author(sent: shapes.NewComment, speaker: speakers.Speaker | None) -> records.Author:
    """Whose comment it is: who has an account goes by its name."""
    if speaker is None:
        return records.Author(sent.name, sent.website, sent.email)
    return records.Author(
        speaker.name or sent.name, sent.website, sent.email, speaker.id, speaker.is_staff
    )


def _posted(
    posted: posting.Posted, speaker: speakers.Speaker | None, now: datetime
) -> flask.Response:
    comment = posted.comment
    speaker = speaker or speakers.Speaker(comment.site, comment.author.id)
    if posted.is_authors:
        replies = 0 if posted.created else msgspec.UNSET
        own = public.own(comment, replies)
        shown = responses.PostedComment(own, speaker.token(), speakers.expiry(now))
    else:
        shown = responses.PostedComment(public.comment(comment))
    is_held = shown.comment.status is public.Shown.PENDING
    response = _at_revision(answers.fresh(shown, 202 if is_held else 201), comment)
    response.headers["Location"] = f"{blueprint.url_prefix}/comments/{comment.id}"
    if not posted.created:
        response.headers["Idempotent-Replayed"] = "true"
    return response


def _cast(
    comment_id: str, speaker: speakers.Speaker, network: str, value: Literal[1, 0, -1]
) -> flask.Response:
    settings, now = context.settings(), datetime.now(UTC)
    voter = voting.Voter(speaker.id, network)
    voting.vote(comment_id, speaker.site, voter, value, settings=settings, now=now)
    expires = speakers.expiry(now)
    return answers.fresh(responses.CastVote(comment_id, value, speaker.token(), expires))


def _at_revision(response: flask.Response, comment: records.Comment) -> flask.Response:
    response.headers["ETag"] = preconditions.revision_tag(comment.revision)
    return response


def _site_asked_about(path: dict[str, str]) -> records.Site | None:
    try:
        if "comment_id" in path:
            return sites.get(floor.comment(path["comment_id"])[0].site)
        return sites.get(path["site_id"]) if "site_id" in path else None
    except errors.NotFound:
        return None


def _canonical(raw: str) -> str:
    try:
        return threadids.canonical_id(raw)
    except errors.BadInput as error:
        raise errors.BadInput("threads", error.reason) from error
