"""The calls of `/api/v1` with which a reader follows threads, with a token and without mail.

Each response is meant for one person, so no cache may store it. Readers learn how many people
follow a thread, but never who they are. Staff learn it only of readers who give a name for it.
"""

from datetime import datetime

import flask
import msgspec

from comments.domain import records
from comments.limits.site_request import SiteRequest
from comments.notifications import reader_follows, thread_followers
from comments.sites import site_settings
from comments.threads import thread_info
from comments.web.api import comment_calls
from comments.web.api.callers import api_callers
from comments.web.http import context, cors, responses
from comments.web.http.decode import json_bodies, parameters, query_strings

blueprint = flask.Blueprint("following", __name__, url_prefix="/api/v1")
blueprint.before_request(comment_calls.admit)


class FollowState(msgspec.Struct, frozen=True):
    """Whether the caller follows a thread, and how many people follow the thread in total."""

    following: bool
    followers: int


class FollowerName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The name to show to the site's staff, or "" to show none."""

    name: str


class ShownThread(msgspec.Struct, frozen=True):
    """A thread that the caller follows. `title` and `url` may be empty.

    `name` is the name under which the site's staff see that the caller follows the thread; if it is
    empty, they do not see it.
    """

    thread: str
    title: str
    url: str
    since: datetime | None
    name: str


class FollowedPage(msgspec.Struct, frozen=True):
    """The threads that the caller follows, by id. Send `cursor` to get the next page."""

    threads: list[ShownThread]
    cursor: str | None


@blueprint.get("/sites/<site:site_id>/following")
@cors.personal
def show(site_id: str) -> flask.Response:
    """Tell whether the caller follows a thread, and how many people follow it."""
    thread, author = _thread_and_author(site_settings.get(site_id))
    return _state(thread, follows=reader_follows.is_following(thread, author))


@blueprint.route("/sites/<site:site_id>/following", methods=["PUT"])
def follow(site_id: str) -> flask.Response:  # noqa: ARG001 - `admit` reads the site
    """Follow a thread."""
    request: SiteRequest = flask.g.asked
    thread, author = _thread_and_author(request.site)
    reader_follows.begin(thread, author, request)
    return _state(thread, follows=True)


@blueprint.route("/sites/<site:site_id>/following/name", methods=["PUT"])
def show_name(site_id: str) -> flask.Response:  # noqa: ARG001 - same
    """Show the site's staff, under a name, that the caller follows a thread; or stop showing it."""
    request: SiteRequest = flask.g.asked
    thread, author = _thread_and_author(request.site)
    sent = json_bodies.read(FollowerName)
    reader_follows.show_name(thread, author, sent.name)
    return _state(thread, follows=True)


@blueprint.delete("/sites/<site:site_id>/following")
def unfollow(site_id: str) -> flask.Response:  # noqa: ARG001 - same
    """Stop following a thread."""
    request: SiteRequest = flask.g.asked
    thread, author = _thread_and_author(request.site)
    reader_follows.unfollow(thread, author, now=request.now)
    return _state(thread, follows=False)


@blueprint.get("/sites/<site:site_id>/followed")
@cors.personal
def list_followed(site_id: str) -> flask.Response:
    """List the threads that the caller follows."""
    site, query = site_settings.get(site_id), query_strings.read(parameters.PageQuery)
    page = reader_follows.page(
        site.id,
        api_callers.required_caller(site).id,
        limit=query.limit,
        cursor=query.cursor or None,
        secret=context.settings().secret,
    )
    shown = [_shown_thread(entry, site) for entry in page.threads]
    return responses.personal(FollowedPage(shown, page.cursor))


def _thread_and_author(site: records.Site) -> tuple[records.ThreadName, str]:
    """Return the thread that the query names, and the caller's author id."""
    thread, _ = query_strings.read_thread(parameters.NoQuery, site)
    return records.ThreadName(site.id, thread), api_callers.required_caller(site).id


def _state(thread: records.ThreadName, *, follows: bool) -> flask.Response:
    shown = FollowState(follows, thread_followers.follower_count(thread))
    return responses.personal(shown)


def _shown_thread(followed: reader_follows.FollowedThread, site: records.Site) -> ShownThread:
    info = followed.info
    if info is None:
        return ShownThread(followed.name.id, "", "", followed.since, followed.shown_name)
    url = thread_info.address(info.url, site)
    return ShownThread(info.shown_id, info.title, url, followed.since, followed.shown_name)
