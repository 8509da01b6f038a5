"""The calls of `/api/v1` about decisions: one's own comments that wait for one, and reports.

What is held is told to its author, by his token, and to nobody else: such an answer is kept by no
cache, and no page that others are sent has a word of it.
"""

from datetime import UTC, datetime

import flask

from comments import moderation, public, records, reporting, sites
from comments.web import answers, bodies, context, networks, queries, shapes, speakers

# Inside the API's, whose checks come first.
blueprint = flask.Blueprint("verdicts", __name__)


@blueprint.get("/sites/<site:site_id>/held")
def list_own_held(site_id: str) -> flask.Response:
    """What the caller wrote in a thread that waits for a moderator: for his eyes alone."""
    site = sites.get(site_id)
    thread, _ = queries.read_thread(shapes.NoQuery, site)
    found = moderation.own_held(records.ThreadName(site.id, thread), speakers.of(site).id)
    return answers.private(answers.fresh(shapes.OwnHeld([public.own(each) for each in found])))


@blueprint.post("/comments/<comment:comment_id>/report")
def report_comment(comment_id: str) -> flask.Response:
    """Tell the moderators of a comment. Once for each person, whoever repeats it."""
    queries.read(shapes.NoQuery)
    site, settings = flask.g.site, context.settings()
    speaker = speakers.on(site)
    reporting.report(
        comment_id,
        site.id,
        bodies.read(shapes.NewReport).reason,
        author=speaker.id if speaker else "",
        network=networks.of_request(settings, flask.request),
        settings=settings,
        now=datetime.now(UTC),
    )
    return answers.fresh(shapes.Reported(), 202)
