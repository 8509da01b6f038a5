"""The followers of a thread: their number, and the readers who agreed to be listed.

The page never shows mail addresses. Only the command `thread followers --addresses` lists those
whose owners agreed, because each such list must have a reason in the audit log.
"""

import flask

from comments import errors
from comments.domain import records
from comments.moderation import thread_list
from comments.notifications import reader_follows, thread_followers
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields
from comments.web.http.decode import query_strings

blueprint = site_visit.blueprint("followers")

_PAGE = 100  # Readers per page


@blueprint.get("/thread/followers")
def show(site_id: str) -> flask.Response:
    """Show how many follow a thread, and the names of the readers who agreed."""
    visit = site_visit.enter(site_id)
    thread, query = query_strings.read_thread(form_fields.ListingQuery, visit.site)
    name = records.ThreadName(visit.site.id, thread)
    about = thread_list.read_thread(name)
    if about is None:
        raise errors.NotFound("thread", thread)
    return site_visit.page(
        "followers.html",
        visit,
        about=about,
        followers=thread_followers.count(name),
        found=reader_follows.listed_followers(name, after=query.cursor, limit=_PAGE),
    )
