"""Atom feeds: the newest comments of a thread, of a site, or of a category.

Feeds are served in the same way as pages of comments, with ETags, 304 and gzip, and share their
cache. Feeds are public, so they contain only data that pages show. Feed readers store feeds without
their addresses, so all links are absolute.
"""

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import flask

from comments.domain import categories, records
from comments.domain.languages import catalogue
from comments.reading import feeds
from comments.sites import site_settings
from comments.threads import thread_info
from comments.web.embedding import atom, embed_queries
from comments.web.http import context, responses
from comments.web.http.decode import query_strings
from comments.web.rendering import nesting, page_language

blueprint = flask.Blueprint("feeds", __name__, url_prefix="/feeds")

_COMMENTS = Path(__file__).parents[2]
_SOURCES = (
    *(f"domain/languages/{language}/embed.json" for language in catalogue.languages()),
    *(f"domain/languages/{language}/feeds.json" for language in catalogue.languages()),
    "web/embedding/atom.py",
    "web/rendering/nesting.py",
    "web/embedding/feed_views.py",
)
# This digest is part of every ETag, because a new release must not answer 304 for a feed that an
# older release rendered.
_RELEASE = hashlib.sha256(
    b"".join((_COMMENTS / name).read_bytes() for name in _SOURCES)
).hexdigest()


@blueprint.get("/<site:site_id>")
def of_site(site_id: str) -> flask.Response:
    """Respond with the newest comments of a site, or of one of its categories."""
    site, asked = site_settings.get(site_id), query_strings.read(embed_queries.SiteFeedQuery)
    lang, term = asked.lang, categories.canonical_term(asked.category)
    texts, title = page_language.of(lang, site), term.removeprefix(categories.ANYWHERE)
    query = urlencode(({"category": term} if term else {}) | ({"lang": lang} if lang else {}))
    service = context.service_url()
    here, embed = f"{service}/feeds/{site.id}", f"{service}/embed/{site.id}"

    def metadata(_feed: feeds.Feed) -> atom.FeedMetadata:
        return atom.FeedMetadata(
            id=atom.feed_id(context.settings().secret, site.id, category=term),
            title=texts.text("feeds.thread-title", title=title)
            if term
            else texts.text("feeds.site-title", site=site.id),
            itself=f"{here}?{query}" if query else here,
            page=site.origins[0] if site.origins else "",
            place=functools.partial(_place, site, embed, lang or ""),
            texts=texts,
        )

    return responses.page(
        feeds.SiteFeed(site, term), site, _form(site, texts, lang or "", metadata)
    )


@blueprint.get("/<site:site_id>/thread")
def of_thread(site_id: str) -> flask.Response:
    """Respond with the newest comments of a thread."""
    site = site_settings.get(site_id)
    thread, asked = query_strings.read_thread(embed_queries.FeedQuery, site)
    texts, lang = page_language.of(asked.lang, site), asked.lang or ""
    name = records.ThreadName(site.id, thread)
    secret, service = context.settings().secret, context.service_url()
    embed = f"{service}/embed/{site.id}"

    def metadata(feed: feeds.Feed) -> atom.FeedMetadata:
        query = urlencode({"thread": thread} | ({"lang": lang} if lang else {}))
        return atom.FeedMetadata(
            id=atom.feed_id(secret, site.id, thread),
            title=_title(feed, texts),
            itself=f"{service}/feeds/{site.id}/thread?{query}",
            page=thread_info.address(feed.url, site) or f"{embed}?{query}",
            place=functools.partial(_place, site, embed, lang),
            texts=texts,
        )

    return responses.page(feeds.ThreadFeed(name, secret), site, _form(site, texts, lang, metadata))


def _title(feed: feeds.Feed, texts: catalogue.Catalogue) -> str:
    if not feed.title:
        return texts.text("feeds.untitled-thread")
    return texts.text("feeds.thread-title", title=feed.title)


def _form(
    site: records.Site,
    texts: catalogue.Catalogue,
    lang: str,
    head: Callable[[feeds.Feed], atom.FeedMetadata],
) -> responses.PageFormat[feeds.Feed]:
    return responses.PageFormat(
        lambda feed: atom.document(head(feed), feed),
        made_of=f"{_RELEASE} {site.origins} {context.service_url()}",
        kind=f"feed {texts.language} {lang}",
        content_type=atom.CONTENT_TYPE,
    )


def _place(site: records.Site, embed: str, lang: str, entry: feeds.FeedEntry) -> str:
    """Return the comment's URL on the site's own page or, if that is unknown, on the embed page."""
    name, comment = entry.name, entry.comment.id
    return nesting.comment_url(site, name, entry.url, comment, embed=embed, lang=lang)
