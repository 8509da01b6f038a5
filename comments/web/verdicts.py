"""The calls of `/api/v1` about decisions: one's own comments that wait for one.

What is held is told to its author, by his token, and to nobody else: such an answer is kept by no
cache, and no page that others are sent has a word of it.
"""

import flask

from comments import moderation, public, records, sites
from comments.web import answers, queries, shapes, speakers

# Inside the API's, whose checks come first.
blueprint = flask.Blueprint("verdicts", __name__)


@blueprint.get("/sites/<site:site_id>/held")
def list_own_held(site_id: str) -> flask.Response:
    """What the caller wrote in a thread that waits for a moderator: for his eyes alone."""
    site = sites.get(site_id)
    thread, _ = queries.read_thread(shapes.NoQuery, site)
    found = moderation.own_held(records.ThreadName(site.id, thread), speakers.of(site).id)
    return answers.private(answers.fresh(shapes.OwnHeld([public.own(each) for each in found])))
