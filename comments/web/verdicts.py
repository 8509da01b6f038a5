"""The calls of `/api/v1` about decisions: comments that wait for one, reports, and opinions.

What is held is told to its author, by his token, and to nobody else: such an answer is kept by no
cache, and no page that others are sent has a word of it. An opinion is taken from who signs it with
the secret of the site's own service, and from nobody else.
"""

from datetime import UTC, datetime

import flask

from comments import (
    consulting,
    errors,
    moderation,
    opinions,
    proving,
    public,
    records,
    reporting,
    sites,
)
from comments.web import (
    answers,
    bodies,
    context,
    cors,
    networks,
    queries,
    responses,
    shapes,
    speakers,
)
from comments.web import errors as web_errors

# Inside the API's, whose checks come first.
blueprint = flask.Blueprint("verdicts", __name__)

_SIGNED = ("webhook-id", "webhook-timestamp", "webhook-signature")
_REFUSED = {
    consulting.Taken.OTHER: ("another opinion came before", "answered-before"),
    consulting.Taken.OVERTAKEN: ("somebody edited or decided since", "decided-since"),
}


@blueprint.get("/sites/<site:site_id>/held")
@cors.personal
def list_own_held(site_id: str) -> flask.Response:
    """List what the caller wrote in a thread, as they see it: for their eyes alone."""
    site = sites.get(site_id)
    thread, _ = queries.read_thread(shapes.NoQuery, site)
    found = moderation.own_held(records.ThreadName(site.id, thread), speakers.of(site).id)
    return answers.private(answers.fresh(responses.OwnHeld([public.own(each) for each in found])))


@blueprint.post("/comments/<comment:comment_id>/report")
def report_comment(comment_id: str) -> flask.Response:
    """Report a comment to the moderators; each person counts once. Without a token, prove work."""
    queries.read(shapes.NoQuery)
    site, settings, now = flask.g.site, context.settings(), datetime.now(UTC)
    speaker, sent = speakers.on(site), bodies.read(shapes.NewReport)
    author = speaker.id if speaker else ""
    if not author:
        purpose = proving.Purpose.REPORT
        author = proving.person(sent.proof, site, purpose, settings=settings, now=now) or ""
    reporting.report(
        comment_id,
        site.id,
        sent.reason,
        author=author,
        network=networks.of_request(settings, flask.request),
        settings=settings,
        now=now,
    )
    return answers.fresh(responses.Reported(), 202)


@blueprint.post("/sites/<site:site_id>/opinions")
def give_opinion(site_id: str) -> flask.Response:
    """Take what a site's own service says, later than it was asked."""
    queries.read(shapes.NoQuery)
    settings, now = context.settings(), datetime.now(UTC)
    data, sent = bodies.raw(), flask.request.headers
    named = {name: sent.get(name, "") for name in _SIGNED}
    if not consulting.is_from_site(site_id, named, data, secret=settings.secret, now=now):
        raise web_errors.Unauthenticated(
            "is not signed by the service that this site asks", code="bad-signature"
        )
    given = bodies.decode(data, shapes.GivenOpinion)
    opinion = opinions.Opinion(given.verdict, given.reason)
    taken = consulting.hear(site_id, given.question, opinion, settings=settings, now=now)
    if taken in _REFUSED:
        message, code = _REFUSED[taken]
        raise errors.Conflict(message, code=code)
    return answers.fresh(responses.TakenOpinion())
