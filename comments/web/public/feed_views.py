"""Atom feeds: the newest comments of a thread or of a site.

Feeds are served in the same way as pages of comments, with ETags, 304 and gzip, and share their
cache. Feeds are public, so they contain only data that pages show.
"""

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import flask

from comments.domain import records
from comments.domain.languages import catalogue
from comments.reading import feeds, thread_pages
from comments.sites import site_settings, thread_info
from comments.web.http import context, request_shapes, responses
from comments.web.http.decode import query_strings
from comments.web.public import atom, nesting

blueprint = flask.Blueprint("feeds", __name__, url_prefix="/feeds")

_COMMENTS = Path(__file__).parents[2]
_SOURCES = (
    "domain/languages/en/embed.json",
    "domain/languages/en/feeds.json",
    "web/public/atom.py",
    "web/public/nesting.py",
    "web/public/feed_views.py",
)
# This digest is part of every ETag, because a new release must not answer 304 for a feed from an
# older release.
_RELEASE = hashlib.sha256(
    b"".join((_COMMENTS / name).read_bytes() for name in _SOURCES)
).hexdigest()


@blueprint.get("/<site:site_id>")
def of_site(site_id: str) -> flask.Response:
    """Answer with the newest comments of a site."""
    site = site_settings.get(site_id)
    query_strings.read(request_shapes.NoQuery)

    def head(_feed: feeds.Feed) -> atom.FeedMetadata:
        return atom.FeedMetadata(
            id=atom.feed_id(context.settings().secret, site.id),
            title=catalogue.ENGLISH.text("feeds.site-title", site=site.id),
            itself=site.id,
            page=site.origins[0] if site.origins else "",
            place=functools.partial(_place, site, "../embed/"),
        )

    return responses.page(feeds.SiteFeed(site), site, _form(site, head))


@blueprint.get("/<site:site_id>/thread")
def of_thread(site_id: str) -> flask.Response:
    """Answer with the newest comments of a thread."""
    site = site_settings.get(site_id)
    thread, _ = query_strings.read_thread(request_shapes.NoQuery, site)
    name = records.ThreadName(site.id, thread)
    secret = context.settings().secret

    def head(feed: feeds.Feed) -> atom.FeedMetadata:
        query = urlencode({"thread": thread})
        return atom.FeedMetadata(
            id=atom.feed_id(secret, site.id, thread),
            title=_title(feed),
            itself=f"thread?{query}",
            page=thread_info.address(feed.url, site) or f"../../embed/{site.id}?{query}",
            place=functools.partial(_place, site, "../../embed/"),
        )

    return responses.page(feeds.ThreadFeed(name, secret), site, _form(site, head))


def _title(feed: feeds.Feed) -> str:
    texts = catalogue.ENGLISH
    if not feed.title:
        return texts.text("feeds.untitled-thread")
    return texts.text("feeds.thread-title", title=feed.title)


def _form(
    site: records.Site, head: Callable[[feeds.Feed], atom.FeedMetadata]
) -> responses.PageFormat[feeds.Feed]:
    return responses.PageFormat(
        lambda feed: atom.document(head(feed), feed),
        made_of=f"{_RELEASE} {site.origins}",
        kind="feed",
        content_type=atom.CONTENT_TYPE,
    )


def _place(site: records.Site, embed: str, entry: feeds.FeedEntry) -> str:
    """Return the comment's URL on the site's own page or, if that is unknown, on the embed page."""
    address = thread_info.address(entry.url, site)
    if address:
        return f"{address}#{nesting.anchor(entry.comment.id)}"
    links = nesting.Links(
        f"{embed}{site.id}",
        entry.name,
        thread_pages.ListingOrder.THREAD,
        request_shapes.DEFAULT_LIMIT,
    )
    return links.around(entry.comment.id)
