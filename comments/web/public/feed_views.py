"""Atom feeds: the newest comments of a thread, and of a whole site.

They are answered like pages: with a tag, 304, gzip, and kept until they change. Anyone may read
them, so they hold nothing that a page does not show.
"""

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import flask

from comments.domain import records
from comments.reading import feeds
from comments.sites import site_settings, thread_info
from comments.web.http import context, request_shapes, responses
from comments.web.http.decode import query_strings
from comments.web.public import atom, nesting

blueprint = flask.Blueprint("feeds", __name__, url_prefix="/feeds")

_HERE = Path(__file__).parent
_SOURCES = ("atom.py", "nesting.py", "feed_views.py")
# Part of every tag: what a reader holds of an older release is not what this one makes.
_RELEASE = hashlib.sha256(b"".join((_HERE / name).read_bytes() for name in _SOURCES)).hexdigest()


@blueprint.get("/<site:site_id>")
def of_site(site_id: str) -> flask.Response:
    """The newest comments of a site."""
    site = site_settings.get(site_id)
    query_strings.read(request_shapes.NoQuery)

    def head(_feed: feeds.Feed) -> atom.Head:
        return atom.Head(
            id=atom.feed_id(context.settings().secret, site.id),
            title=f"Comments on {site.id}",
            itself=site.id,
            page=site.origins[0] if site.origins else "",
            place=functools.partial(_place, site, "../embed/"),
        )

    return responses.page(feeds.SiteFeed(site), site, _form(site, head))


@blueprint.get("/<site:site_id>/thread")
def of_thread(site_id: str) -> flask.Response:
    """The newest comments of a thread."""
    site = site_settings.get(site_id)
    thread, _ = query_strings.read_thread(request_shapes.NoQuery, site)
    name = records.ThreadName(site.id, thread)
    secret = context.settings().secret

    def head(feed: feeds.Feed) -> atom.Head:
        query = urlencode({"thread": thread})
        return atom.Head(
            id=atom.feed_id(secret, site.id, thread),
            title=f"Comments on {feed.title}" if feed.title else "Comments",
            itself=f"thread?{query}",
            page=thread_info.address(feed.url, site) or f"../../embed/{site.id}?{query}",
            place=functools.partial(_place, site, "../../embed/"),
        )

    return responses.page(feeds.ThreadFeed(name, secret), site, _form(site, head))


def _form(
    site: records.Site, head: Callable[[feeds.Feed], atom.Head]
) -> responses.Form[feeds.Feed]:
    return responses.Form(
        lambda feed: atom.document(head(feed), feed),
        made_of=f"{_RELEASE} {site.origins}",
        content_type=atom.CONTENT_TYPE,
    )


def _place(site: records.Site, embed: str, entry: feeds.Entry) -> str:
    """Where a comment is read: on the site's page, or on ours."""
    address = thread_info.address(entry.url, site)
    if address:
        return f"{address}#{nesting.anchor(entry.comment.id)}"
    links = nesting.Links(
        f"{embed}{site.id}", entry.name, request_shapes.Order.THREAD, request_shapes.DEFAULT_LIMIT
    )
    return links.around(entry.comment.id)
