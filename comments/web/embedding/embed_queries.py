"""The queries of a thread's feeds and of a thread as HTML."""

import msgspec

from comments.reading import thread_pages
from comments.web.http.decode import parameters


class FeedQuery(parameters.Request, frozen=True):
    """The parameters of a feed, apart from `thread` and `page`.

    `lang` is the language of all texts except the comments (`page_language`).
    """

    lang: str | msgspec.UnsetType = msgspec.UNSET


class SiteFeedQuery(FeedQuery, frozen=True):
    """The parameters of a site's feed. `category` is a category term (`categories`)."""

    category: parameters.Typed = ""


class EmbedQuery(FeedQuery, frozen=True):
    """The parameters of a thread as HTML, apart from `thread` and `page`.

    `order`, `around` and `slug` have the same meaning as in `comment_shapes.ListQuery`. `reply`
    names a comment: the page around the comment is shown, with a form to answer it. `title` and
    `url` describe the page with the thread, as in `comment_shapes.NewComment`; the form sends them
    with a comment.
    """

    order: thread_pages.ListingOrder | msgspec.UnsetType = msgspec.UNSET
    limit: parameters.Limit = parameters.DEFAULT_LIMIT
    cursor: parameters.Cursor | msgspec.UnsetType = msgspec.UNSET
    around: parameters.IdOrSlug | msgspec.UnsetType = msgspec.UNSET
    slug: parameters.Slug | msgspec.UnsetType = msgspec.UNSET
    below: parameters.CommentId | msgspec.UnsetType = msgspec.UNSET
    reply: parameters.CommentId | msgspec.UnsetType = msgspec.UNSET
    title: parameters.Typed = ""
    url: str = ""
