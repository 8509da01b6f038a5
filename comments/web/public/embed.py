"""Threads as HTML: a page for frames and readers without JavaScript, a fragment for static sites.

Owns both forms and their refusals, which are pages too. They show what the API's page of the same
query shows, at its cost: the thread's title and address come with a folded thread's directory.
No script runs in them. Only the site's own registered origins may frame a page.
"""

import hashlib
from pathlib import Path

import flask
import msgspec

from comments import errors
from comments.domain import presentation, records
from comments.reading import listings, thread_pages
from comments.sites import site_settings, thread_info
from comments.tree import ordered_query
from comments.web.http import (
    context,
    problems,
    request_shapes,
    response_shapes,
    responses,
    security_headers,
)
from comments.web.http.decode import query_strings
from comments.web.public import json_ld, nesting

blueprint = flask.Blueprint("embed", __name__, url_prefix="/embed")

_HTML = "text/html; charset=utf-8"
_PAGE = "public/embed.html"
_FRAGMENT = "public/thread.html"
_WEB = Path(__file__).parents[1]
_SOURCES = (
    "public/embed.py",
    "public/nesting.py",
    "public/json_ld.py",
    f"templates/{_PAGE}",
    f"templates/{_FRAGMENT}",
)
# Part of every tag: what a reader holds of an older release is not what this one makes.
_RELEASE = hashlib.sha256(b"".join((_WEB / name).read_bytes() for name in _SOURCES)).hexdigest()


# Any text as the site's id: what cannot be one is refused by a page, like one that is not there.
@blueprint.get("/<site_id>")
def page(site_id: str) -> flask.Response:
    """A thread as a whole document."""
    return _answer(_asked(_site(site_id), base=""), _PAGE)


@blueprint.get("/<site_id>/fragment")
def fragment(site_id: str) -> flask.Response:
    """A thread as a part of somebody's page, to be put there when the site is built.

    Its links lead to the whole document: where people reach the service, or, if no setting says
    so, where this request did, without a scheme: that is the one of the page around.
    """
    site, public = _site(site_id), context.settings().public_url
    there = flask.url_for("embed.page", site_id=site.id)
    base = f"{public}/embed/{site.id}" if public else f"//{flask.request.host}{there}"
    return _answer(_asked(site, base=base), _FRAGMENT)


@blueprint.after_request
def _frame(response: flask.Response) -> flask.Response:
    site: records.Site | None = flask.g.get("embedding")
    policy = security_headers.framed_by(site.origins if site else ())
    response.headers["Content-Security-Policy"] = policy
    return response


@blueprint.errorhandler(Exception)
def _refused(error: Exception) -> flask.Response:
    """The API's answer to an error, as a page."""
    told = problems.answer(error)
    problem = msgspec.json.decode(told.data, type=response_shapes.Problem)
    response = flask.Response(
        flask.render_template("public/problem.html", problem=problem, root=_root()),
        status=told.status_code,
        content_type=_HTML,
    )
    for name, value in told.headers:
        if name.lower() not in {"content-type", "content-length"}:
            response.headers[name] = value
    return response


class _Asked(msgspec.Struct, frozen=True):
    """What was asked for."""

    site: records.Site
    name: records.ThreadName
    query: request_shapes.EmbedQuery
    links: nesting.Links

    @property
    def limits(self) -> thread_pages.Asked:
        """How much is wanted, from where."""
        secret = context.settings().secret
        return thread_pages.Asked(self.query.limit, self.query.cursor or None, secret)

    def next(self, cursor: str | None) -> str:
        """The page that goes on; empty at the end."""
        if cursor is None:
            return ""
        if self.query.below:
            return self.links.below(self.query.below, cursor=cursor)
        return self.links.after(cursor)


class _Shown(msgspec.Struct, frozen=True):
    """What the templates show."""

    title: str
    address: str
    total: int
    items: list[nesting.Item]
    links: nesting.Links
    is_first: bool
    is_ordered: bool
    next: str

    @property
    def heading(self) -> str:
        """The document's title."""
        counted = nesting.counted(self.total, "comment")
        return f"{self.title} - {counted}" if self.title else counted

    @property
    def lists(self) -> int:
        """How many lists are open behind the last comment."""
        return self.items[-1].depth + 1 if self.items else 0


def _site(site_id: str) -> records.Site:
    site = site_settings.get(site_id)
    flask.g.embedding = site
    return site


def _asked(site: records.Site, *, base: str) -> _Asked:
    thread, query = query_strings.read_thread(request_shapes.EmbedQuery, site)
    _refuse_together(query)
    name = records.ThreadName(site.id, thread)
    return _Asked(
        site=site,
        name=name,
        query=query,
        links=nesting.Links(base, name, query.order, query.limit),
    )


def _refuse_together(query: request_shapes.EmbedQuery) -> None:
    """An order has no place around or below a comment, and only what is below it goes on."""
    is_ordered = query.order is not request_shapes.Order.THREAD
    for with_, beside in (
        ("around", {"cursor": query.cursor, "below": query.below, "order": is_ordered}),
        ("below", {"order": is_ordered}),
    ):
        if getattr(query, with_):
            for name, given in beside.items():
                if given:
                    raise errors.BadInput(name, f"does not go with {with_}")


def _answer(asked: _Asked, template: str) -> flask.Response:
    if asked.query.below:
        return _below(asked, asked.query.below, template)
    source = _source(asked)
    return responses.page(
        source,
        asked.site,
        responses.Form(
            lambda found: _rendered(asked, template, nesting.shown(found), found, source),
            made_of=repr((_RELEASE, template, asked.links.base, asked.site.origins)),
            content_type=_HTML,
            describe=lambda found: _pointer(asked, found),
        ),
    )


def _source(asked: _Asked) -> thread_pages.ListingPage:
    query = asked.query
    if query.around:
        return thread_pages.Around(asked.site.scheme, asked.name, query.around, asked.limits)
    order = thread_pages.Order(query.order)
    return listings.source(asked.site, asked.name.id, asked.limits, order=order)


def _below(asked: _Asked, comment_id: str, template: str) -> flask.Response:
    """A comment and what stands below it.

    Its tag is of its bytes: the comment is read on its own, perhaps before a change that the tag
    of the listing has seen.
    """
    top = ordered_query.listed_in(asked.name, comment_id, field="below")
    source = thread_pages.Below(top, asked.limits)
    found = source.page()
    comments = nesting.shown(found)
    if asked.query.cursor is msgspec.UNSET:
        replies = msgspec.UNSET if found.cursor else len(comments)
        comments.insert(0, presentation.comment(top, replies))
    made = _rendered(asked, template, comments, found, source)
    response = responses.cacheable(made, content_type=_HTML)
    response.headers.update(_pointer(asked, found))
    return response


def _pointer(asked: _Asked, found: presentation.ThreadPage) -> dict[str, str]:
    """The next page in the same form, for builders: they need not read the HTML."""
    query = asked.next(found.cursor).partition("?")[2]
    return {"Link": f'<?{query}>; rel="next"'} if query else {}


def _rendered(
    asked: _Asked,
    template: str,
    comments: list[presentation.Comment],
    found: presentation.ThreadPage,
    source: thread_pages.ListingPage,
) -> bytes:
    query, about = asked.query, source.heading()
    shown = _Shown(
        title=about.title if about else "",
        address=thread_info.address(about.url, asked.site) if about else "",
        total=found.total,
        items=nesting.items(comments, query.order),
        links=asked.links,
        is_first=not (query.cursor or query.around or query.below),
        is_ordered=not (query.around or query.below),
        next=asked.next(found.cursor),
    )
    data = json_ld.posting(
        title=shown.title, address=shown.address, total=shown.total, items=shown.items
    )
    made = flask.render_template(template, shown=shown, d=nesting, data=data, root=_root())
    return made.encode()


def _root() -> str:
    """The way from here to the service's root, wherever a proxy has put that."""
    return "../" * (flask.request.path.count("/") - 1)
