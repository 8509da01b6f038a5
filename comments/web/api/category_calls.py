"""The calls of `/api/v1` that list the threads and the newest comments of a category.

Both calls take a category term: a category, which includes its subcategories, or "*/" and a part of
a path (`categories`). The lists are public: they contain approved comments only, and a thread has
categories only from an approved comment or from a moderator (`naming`).
"""

from typing import Annotated

import flask
import msgspec

from comments.domain import categories, presentation, records
from comments.domain.records import Status
from comments.moderation import review_queue, thread_list
from comments.sites import site_settings
from comments.threads import thread_info
from comments.tree.counters import totals
from comments.web.http import context, responses
from comments.web.http.decode import parameters, query_strings
from comments.web.rendering import nesting

# This blueprint is nested in the blueprint of `comment_calls`, whose checks run first.
blueprint = flask.Blueprint("categories", __name__)

_DEFAULT_LIMIT = 25


class CategoryListQuery(parameters.Request, frozen=True):
    """A category or, after "*/", a part of a path, and a page of the list."""

    category: Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
    limit: Annotated[int, msgspec.Meta(ge=1, le=review_queue.MOST)] = _DEFAULT_LIMIT
    cursor: parameters.Cursor | msgspec.UnsetType = msgspec.UNSET


class CategoryThread(msgspec.Struct, frozen=True):
    """A thread of a category. `comments` is the number of comments that readers see.

    `title` and `url` are empty if unknown.
    """

    thread: str
    title: str
    url: str
    categories: tuple[str, ...]
    comments: int


class CategoryThreads(msgspec.Struct, frozen=True):
    """Threads of a category, newest first. Send `cursor` to get the next page."""

    threads: list[CategoryThread]
    cursor: str | None


class CategoryComment(msgspec.Struct, frozen=True):
    """A comment in a category, and its thread.

    `title` and `url` describe the thread; they are empty if unknown. `link` leads to the comment on
    the page that embeds the thread if the page's URL is known. Otherwise it leads to the service's
    own page for the thread, relative to the service's address.
    """

    comment: presentation.PublicComment
    thread: str
    title: str
    url: str
    link: str


class CategoryComments(msgspec.Struct, frozen=True):
    """Comments in a category, newest first. Send `cursor` to get the next page."""

    comments: list[CategoryComment]
    cursor: str | None


@blueprint.get("/sites/<site:site_id>/threads")
def list_threads(site_id: str) -> flask.Response:
    """List the threads of a category, newest first."""
    site, query = site_settings.get(site_id), query_strings.read(CategoryListQuery)
    page = thread_list.threads(
        site.id,
        categories.canonical_term(query.category),
        limit=query.limit,
        cursor=query.cursor or None,
        secret=context.settings().secret,
    )
    numbers = totals.listed_counts(site.id, [thread.name.id for thread in page.threads])
    shown = [
        CategoryThread(
            thread.shown_id,
            thread.title,
            thread_info.address(thread.url, site),
            thread.categories,
            number,
        )
        for thread, number in zip(page.threads, numbers, strict=True)
    ]
    return responses.cacheable(msgspec.json.encode(CategoryThreads(shown, page.cursor)))


def list_comments(site: records.Site) -> flask.Response:
    """List the comments of a category, newest first, for `comment_calls.list_comments`."""
    query = query_strings.read(CategoryListQuery)
    term = categories.canonical_term(query.category)
    page = review_queue.page(
        review_queue.QueueFilter(site.id, (Status.APPROVED,), category=term),
        limit=query.limit,
        cursor=query.cursor or None,
        secret=context.settings().secret,
    )
    comments = [case.comment for case in page.cases]
    threads = thread_info.get_many(
        [records.ThreadName(site.id, comment.thread) for comment in comments]
    )
    shown = [
        _category_comment(site, comment, thread)
        for comment, thread in zip(comments, threads, strict=True)
        if thread is not None
    ]
    return responses.cacheable(msgspec.json.encode(CategoryComments(shown, page.cursor)))


def _category_comment(
    site: records.Site, comment: records.Comment, thread: records.Thread
) -> CategoryComment:
    name, url = records.ThreadName(site.id, thread.shown_id), thread_info.address(thread.url, site)
    link = nesting.comment_url(site, name, url, comment.id, embed=f"/embed/{site.id}")
    return CategoryComment(presentation.comment(comment), name.id, thread.title, url, link)
