"""The calls of `/api/v1` for the caller's inbox: list unread replies, and mark them as read.

Each response is meant for one person, so no cache may store it, and each call requires the caller's
token. A reply appears in the inbox as soon as the event of its approval is delivered (`inbox`).
"""

from typing import Annotated

import flask
import msgspec

from comments import errors
from comments.domain import presentation, records
from comments.notifications import inbox
from comments.sites import site_settings
from comments.threads import thread_info
from comments.web.api import comment_calls
from comments.web.api.callers import api_callers
from comments.web.http import context, cors, responses
from comments.web.http.decode import json_bodies, parameters, query_strings
from comments.web.rendering import nesting

blueprint = flask.Blueprint("inbox", __name__, url_prefix="/api/v1")
blueprint.before_request(comment_calls.admit)

CommentIds = Annotated[list[parameters.CommentId], msgspec.Meta(max_length=inbox.MOST)]


class ReadReplies(parameters.Request, frozen=True):
    """The replies that the caller has read: some comments, or a comment and all older ones.

    If no field is given, the caller has read all replies.
    """

    ids: CommentIds | msgspec.UnsetType = msgspec.UNSET
    until: parameters.CommentId | msgspec.UnsetType = msgspec.UNSET


class InboxReply(msgspec.Struct, frozen=True):
    """An unread reply and its thread; in the comment, `reply_to` is the caller's comment.

    `title` and `url` describe the thread; they are empty if unknown. `link` leads to the reply on
    the page that embeds the thread if the page's URL is known. Otherwise it leads to the service's
    own page for the thread, relative to the service's address.
    """

    comment: presentation.PublicComment
    thread: str
    title: str
    url: str
    link: str


class Inbox(msgspec.Struct, frozen=True):
    """The caller's unread replies, newest first. Send `cursor` to get the next page.

    `unread` is the number of all unread replies, which is at most 200. If there are more, the
    oldest are dropped.
    """

    unread: int
    replies: list[InboxReply]
    cursor: str | None


class RepliesRead(msgspec.Struct, frozen=True):
    """The number of replies that the call marked as read."""

    read: int


@blueprint.get("/sites/<site:site_id>/inbox")
@cors.personal
def list_inbox(site_id: str) -> flask.Response:
    """List the unread replies to the caller's comments, newest first."""
    site, query = site_settings.get(site_id), query_strings.read(parameters.PageQuery)
    author = _caller(site)
    secret = context.settings().secret
    page = inbox.unread(
        site.id, author, limit=query.limit, cursor=query.cursor or None, secret=secret
    )
    shown = [_inbox_reply(reply, site) for reply in page.replies]
    return responses.personal(Inbox(page.unread, shown, page.cursor))


@blueprint.post("/sites/<site:site_id>/inbox/read")
def mark_read(site_id: str) -> flask.Response:
    """Mark replies as read: those in `ids`, those up to the time of `until`, or all."""
    query_strings.read(parameters.NoQuery)
    author = _caller(site_settings.get(site_id))
    sent = json_bodies.read(ReadReplies)
    if isinstance(sent.ids, list) and sent.until:
        raise errors.BadInput("ids", "conflicting-fields", other="until")
    if sent.until:
        read = inbox.mark_until(site_id, author, sent.until)
    elif isinstance(sent.ids, list):
        read = inbox.mark_some(site_id, author, frozenset(sent.ids))
    else:
        read = inbox.mark_all(site_id, author)
    return responses.personal(RepliesRead(read))


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


def _inbox_reply(reply: inbox.UnreadReply, site: records.Site) -> InboxReply:
    comment = reply.comment
    url, name = thread_info.address(reply.url, site), records.ThreadName(site.id, reply.thread)
    link = nesting.comment_url(site, name, url, comment.id, embed=f"/embed/{site.id}")
    return InboxReply(presentation.comment(comment), reply.thread, reply.title, url, link)
