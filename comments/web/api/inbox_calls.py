"""The calls of `/api/v1` for the caller's inbox: list unread replies, and mark them as read.

Each response is meant for one person, so no cache may store it, and each call requires the caller's
token. A reply appears in the inbox as soon as the event of its approval is delivered (`inbox`).
"""

import flask

from comments import errors
from comments.domain import presentation, records
from comments.notifications import inbox
from comments.reading import thread_pages
from comments.sites import site_settings
from comments.threads import thread_info
from comments.web.api import comment_calls
from comments.web.api.callers import api_callers
from comments.web.http import context, cors, response_shapes, responses
from comments.web.http.decode import json_bodies, query_strings, request_shapes
from comments.web.rendering import nesting

blueprint = flask.Blueprint("inbox", __name__, url_prefix="/api/v1")
blueprint.before_request(comment_calls.admit)


@blueprint.get("/sites/<site:site_id>/inbox")
@cors.personal
def list_inbox(site_id: str) -> flask.Response:
    """List the unread replies to the caller's comments, newest first."""
    site, query = site_settings.get(site_id), query_strings.read(request_shapes.PageQuery)
    author = _caller(site)
    secret = context.settings().secret
    page = inbox.unread(
        site.id, author, limit=query.limit, cursor=query.cursor or None, secret=secret
    )
    shown = [_inbox_reply(reply, site) for reply in page.replies]
    return responses.personal(response_shapes.Inbox(page.unread, shown, page.cursor))


@blueprint.post("/sites/<site:site_id>/inbox/read")
def mark_read(site_id: str) -> flask.Response:
    """Mark replies as read: those in `ids`, those up to the time of `until`, or all."""
    query_strings.read(request_shapes.NoQuery)
    author = _caller(site_settings.get(site_id))
    sent = json_bodies.read(request_shapes.ReadReplies)
    if isinstance(sent.ids, list) and sent.until:
        raise errors.BadInput("ids", "conflicting-fields", other="until")
    if sent.until:
        read = inbox.mark_until(site_id, author, sent.until)
    elif isinstance(sent.ids, list):
        read = inbox.mark_some(site_id, author, frozenset(sent.ids))
    else:
        read = inbox.mark_all(site_id, author)
    return responses.personal(response_shapes.RepliesRead(read))


def _caller(site: records.Site) -> str:
    """Return the caller's author id.

    Raises:
        errors.Forbidden: the site has no inboxes.
        problems.Unauthenticated: there is no token, or it is not valid for this site.
    """
    author = api_callers.required_caller(site).id
    if not site.options.inbox:
        raise errors.Forbidden("inbox-off")
    return author


def _inbox_reply(reply: inbox.UnreadReply, site: records.Site) -> response_shapes.InboxReply:
    comment = reply.comment
    url = thread_info.address(reply.url, site)
    name = records.ThreadName(site.id, comment.thread)
    links = nesting.Links(
        f"/embed/{site.id}", name, thread_pages.ListingOrder.THREAD, request_shapes.DEFAULT_LIMIT
    )
    link = f"{url}#{nesting.anchor(comment.id)}" if url else links.around(comment.id)
    return response_shapes.InboxReply(
        presentation.comment(comment), comment.thread, reply.title, url, link
    )
