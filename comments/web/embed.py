"""Threads as HTML: a page for frames and readers without JavaScript, a fragment for static sites.

Owns both forms and their refusals, which are pages too. They show what the API's page of the same
query shows, at its cost: the thread's title and address are kept by the process (`threads`).
No script runs in them. Only the site's own registered origins may frame a page.
"""

import dataclasses

import flask
import msgspec

from comments import errors, floor, public, reading, records, sites, sorthash, threads
from comments.web import answers, context, discussion, headers, linkeddata, queries, shapes
from comments.web import errors as web_errors

blueprint = flask.Blueprint("embed", __name__, url_prefix="/embed", template_folder="templates")

_HTML = "text/html; charset=utf-8"


# Any text as the site's id: what cannot be one is refused by a page, like one that is not there.
@blueprint.get("/<site_id>")
def page(site_id: str) -> flask.Response:
    """A thread as a whole document."""
    shown = _shown(_site(site_id), base="")
    data = linkeddata.posting(
        title=shown.title, address=shown.address, total=shown.total, items=shown.items
    )
    made = flask.render_template("embed.html", shown=shown, d=discussion, data=data, root=_root())
    return _answer(made, shown)


@blueprint.get("/<site_id>/fragment")
def fragment(site_id: str) -> flask.Response:
    """A thread as a part of somebody's page, to be put there when the site is built.

    Its links lead to the whole document, without a scheme: that is the one of the page around.
    """
    site = _site(site_id)
    there = flask.url_for("embed.page", site_id=site.id)
    shown = _shown(site, base=f"//{flask.request.host}{there}")
    return _answer(flask.render_template("thread.html", shown=shown, d=discussion), shown)


@blueprint.after_request
def _frame(response: flask.Response) -> flask.Response:
    site: records.Site | None = flask.g.get("embedding")
    policy = headers.framed_by(site.origins if site else ())
    response.headers["Content-Security-Policy"] = policy
    return response


@blueprint.errorhandler(Exception)
def _refused(error: Exception) -> flask.Response:
    """The API's answer to an error, as a page."""
    told = web_errors.answer(error)
    problem = msgspec.json.decode(told.data, type=shapes.Problem)
    response = flask.Response(
        flask.render_template("problem.html", problem=problem, root=_root()),
        status=told.status_code,
        content_type=_HTML,
    )
    for name, value in told.headers:
        if name.lower() not in {"content-type", "content-length"}:
            response.headers[name] = value
    return response


@dataclasses.dataclass(frozen=True, slots=True)
class _Shown:
    """What the templates show."""

    title: str
    address: str
    total: int
    items: list[discussion.Item]
    links: discussion.Links
    is_first: bool
    is_ordered: bool
    next: str

    @property
    def heading(self) -> str:
        """The document's title."""
        counted = discussion.counted(self.total, "comment")
        return f"{self.title} - {counted}" if self.title else counted

    @property
    def lists(self) -> int:
        """How many lists are open behind the last comment."""
        return self.items[-1].depth + 1 if self.items else 0


def _site(site_id: str) -> records.Site:
    site = sites.get(site_id)
    flask.g.embedding = site
    return site


def _shown(site: records.Site, *, base: str) -> _Shown:
    thread, query = queries.read_thread(shapes.EmbedQuery, site)
    _refuse_together(query)
    name = records.ThreadName(site.id, thread)
    links = discussion.Links(base, name, query.order, query.limit)
    comments, cursor, total = _read(site, name, query)
    about = threads.get(name)
    return _Shown(
        title=about.title if about else "",
        address=threads.address(about, site),
        total=total,
        items=discussion.items(comments, query.order),
        links=links,
        is_first=not (query.cursor or query.around or query.below),
        is_ordered=not (query.around or query.below),
        next=_next(links, query, cursor),
    )


def _read(
    site: records.Site, name: records.ThreadName, query: shapes.EmbedQuery
) -> tuple[list[public.Comment], str | None, int]:
    """The comments to show, the cursor behind them, and how many the thread has."""
    scheme = sorthash.Scheme(site.digits, site.width)
    asked = reading.Asked(query.limit, query.cursor or None, context.settings().secret)
    if query.below:
        return _below(name, query.below, asked)
    if query.around:
        found = reading.around(scheme, name, query.around, asked)
    else:
        found = reading.page(scheme, name, asked, order=reading.Order(query.order))
    return discussion.shown(found), found.cursor, found.total


def _below(
    name: records.ThreadName, comment_id: str, asked: reading.Asked
) -> tuple[list[public.Comment], str | None, int]:
    """A comment and what stands below it."""
    top = floor.listed_in(name, comment_id)
    found = reading.replies(comment_id, asked)
    comments = discussion.shown(found)
    if asked.cursor is None:
        replies = msgspec.UNSET if found.cursor else len(comments)
        comments.insert(0, public.comment(top, replies))
    return comments, found.cursor, found.total


def _next(links: discussion.Links, query: shapes.EmbedQuery, cursor: str | None) -> str:
    if cursor is None:
        return ""
    if query.below:
        return links.below(query.below, cursor=cursor)
    return links.after(cursor)


def _refuse_together(query: shapes.EmbedQuery) -> None:
    """An order has no place around or below a comment, and only what is below it goes on."""
    is_ordered = query.order is not shapes.Order.THREAD
    for with_, beside in (
        ("around", {"cursor": query.cursor, "below": query.below, "order": is_ordered}),
        ("below", {"order": is_ordered}),
    ):
        if getattr(query, with_):
            for name, given in beside.items():
                if given:
                    raise errors.BadInput(name, f"does not go with {with_}")


def _answer(made: str, shown: _Shown) -> flask.Response:
    response = answers.cacheable(made.encode(), content_type=_HTML)
    if shown.next:
        # For builders, which need not read the HTML: the next page in the same form.
        query = shown.next.partition("?")[2]
        response.headers["Link"] = f'<?{query}>; rel="next"'
    return response


def _root() -> str:
    """The way from here to the service's root, wherever a proxy has put that."""
    return "../" * (flask.request.path.count("/") - 1)
