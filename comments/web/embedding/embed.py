"""Threads as HTML: a page for frames and browsers without JavaScript, a fragment for static sites.

Both forms show the comments that the API returns for the same query. The pages need no additional
reads, because a compacted thread's directory contains the thread's title and address. Errors are
HTML pages too. These pages run no scripts. Only pages of the site's registered origins may show
these pages in a frame.
"""

import hashlib
import html
import urllib.parse
from pathlib import Path

import flask
import msgspec

from comments.domain import presentation, records, site_options
from comments.domain.ids import thread_ids
from comments.domain.languages import catalogue, error_texts
from comments.domain.text import cleaning, inline_images
from comments.moderation import thread_access
from comments.reading import listings, thread_pages
from comments.reading.materialized import thread_view
from comments.sites import site_settings
from comments.threads import thread_info
from comments.tree.lists import listed_comments
from comments.web.embedding import avatars, embed_queries, json_ld, plain_form
from comments.web.http import context, problems, responses, security_headers
from comments.web.http.decode import parameters, query_strings
from comments.web.rendering import nesting, page_language

blueprint = flask.Blueprint("embed", __name__, url_prefix="/embed")

_HTML = "text/html; charset=utf-8"
_PAGE = "public/embed.html"
_FRAGMENT = "public/thread.html"
_COMMENTS = Path(__file__).parents[2]
_SOURCES = (
    *(f"domain/languages/{language}/embed.json" for language in catalogue.languages()),
    "domain/languages/formats.py",
    "domain/text/inline_images.py",
    "web/embedding/avatars.py",
    "web/embedding/embed.py",
    "web/rendering/nesting.py",
    "web/embedding/json_ld.py",
    "web/embedding/plain_form.py",
    f"web/templates/{_PAGE}",
    f"web/templates/{_FRAGMENT}",
    "web/templates/public/form.html",
)
# This digest is part of every ETag, because a new release must not answer 304 for a page that an
# older release rendered.
_RELEASE = hashlib.sha256(
    b"".join((_COMMENTS / name).read_bytes() for name in _SOURCES)
).hexdigest()


_EXCLUDED = {
    "around": ("cursor", "below", "order"),
    "slug": ("around", "cursor", "below", "order"),
    "reply": ("around", "slug", "cursor", "below", "order"),
    "below": ("order",),
}


# The route accepts any text as an id, so that malformed ids get the same error page as unknown ids.
@blueprint.get("/<site_id>")
def page(site_id: str) -> flask.Response:
    """Respond with a thread as a whole document.

    Without `thread` and `page`, redirect to the thread of the page from which the reader comes. The
    link in the snippet relies on this redirect, so that the same snippet works on all pages.
    """
    site, query = site_of(site_id), flask.request.args
    if flask.request.referrer and not _has_thread_parameter():
        named = [*query.items(multi=True), ("page", flask.request.referrer)]
        there = flask.url_for("embed.page", site_id=site.id)
        where = f"{there}?{urllib.parse.urlencode(named)}"
        return responses.private(flask.make_response(flask.redirect(where)))
    return _answer(_read_request(site, base=""), _PAGE)


@blueprint.get("/<site_id>/fragment")
def fragment(site_id: str) -> flask.Response:
    """Respond with a thread as a page fragment, which a static site includes at build time.

    Links lead to the whole document at PUBLIC_URL. If PUBLIC_URL is not set, links contain the
    request's host but no scheme. Browsers then use the scheme of the page that includes the
    fragment.
    """
    site, public = site_of(site_id), context.settings().public_url
    there = flask.url_for("embed.page", site_id=site.id)
    base = f"{public}/embed/{site.id}" if public else f"//{flask.request.host}{there}"
    return _answer(_read_request(site, base=base), _FRAGMENT)


@blueprint.after_request
def frame(response: flask.Response) -> flask.Response:
    """Allow the site's pages to show a response in a frame, and allow its form to be submitted."""
    site: records.Site | None = flask.g.get("embedding")
    origins, images = (site.origins, site.options.images) if site else ((), ())
    has_form = flask.g.get("has_form", False)
    policy = security_headers.framing_policy(origins, images, has_form=has_form)
    response.headers["Content-Security-Policy"] = policy
    if not _has_thread_parameter():
        response.vary.add("Referer")
    return response


def _has_thread_parameter() -> bool:
    return bool({"thread", "page"} & flask.request.args.keys())


@blueprint.errorhandler(Exception)
def show_error(error: Exception) -> flask.Response:
    """Respond with a page that shows the content of the API's problem document."""
    return problems.page(error, _problem)


def _problem(problem: problems.Problem) -> flask.Response:
    wanted, sentence = flask.request.args.get("lang", ""), problem.detail
    texts = page_language.of_refusal(wanted, flask.g.get("embedding"))
    if problem.code in texts.entries["errors"]:
        sentence = error_texts.of_code(problem.code, problem.field, problem.params, texts)
    else:
        texts = catalogue.ENGLISH
    made = flask.render_template(
        "public/problem.html",
        **page_language.variables(texts),
        heading=texts.text("embed.not-shown"),
        sentence=sentence,
        problem=problem,
        root=_root(),
    )
    return flask.Response(made, content_type=_HTML)


class _Request(msgspec.Struct, frozen=True):
    """A checked request."""

    site: records.Site
    name: records.ThreadName
    query: embed_queries.EmbedQuery
    order: thread_pages.ListingOrder
    links: nesting.Links
    access: thread_access.ThreadAccess
    texts: catalogue.Catalogue

    @property
    def may_write(self) -> bool:
        """Return whether people can post on the page without JavaScript."""
        options = self.site.options
        return options.forms and options.guests and self.access is thread_access.ThreadAccess.OPEN

    @property
    def is_first(self) -> bool:
        """Return whether the request is for a first page."""
        query = self.query
        return not (query.cursor or query.around or query.below or query.reply)

    @property
    def has_form(self) -> bool:
        """Return whether the response contains the form.

        Fragments link to the page with the form instead.
        """
        is_asked = self.is_first or bool(self.query.reply)
        return self.may_write and is_asked and not self.links.base

    @property
    def limits(self) -> thread_pages.PageRequest:
        """Return the number of comments to show and the cursor to start from."""
        secret = context.settings().secret
        return thread_pages.PageRequest(self.query.limit, self.query.cursor or None, secret)

    def next(self, cursor: str | None) -> str:
        """Return the URL of the next page; "" on the last page."""
        if cursor is None:
            return ""
        if self.query.below:
            return self.links.below(self.query.below, cursor=cursor)
        return self.links.after(cursor)


class _PageValues(msgspec.Struct, frozen=True):
    """The values that the templates show."""

    title: str
    address: str
    total: int
    items: list[nesting.Item]
    pinned: list[presentation.PublicComment]
    links: nesting.Links
    is_first: bool
    is_ordered: bool
    next: str
    options: site_options.SiteOptions
    access: thread_access.ThreadAccess
    texts: catalogue.Catalogue
    may_write: bool
    form: plain_form.Form | None

    @property
    def closed_reason(self) -> str:
        """Return why there is no form; "" if there is one, or if the site offers no forms."""
        if self.access is not thread_access.ThreadAccess.OPEN:
            return self.access.value
        return "members-only" if self.options.forms and not self.options.guests else ""

    @property
    def heading(self) -> str:
        """Return the document's title."""
        comments = self.texts.text("embed.comments", count=self.total)
        if not self.title:
            return comments
        return self.texts.text("embed.page-title", title=self.title, comments=comments)

    def body(self, comment: presentation.PublicComment) -> str:
        """Return a comment's HTML with the site's images, and with labels for code and tables."""
        body = inline_images.show_images(comment.html, self.options.images)
        for pattern, role, name in (
            ('<pre tabindex="0"', ' role="group"', self.texts.text("embed.code")),
            ('<table tabindex="0"', "", self.texts.text("embed.table")),
        ):
            body = body.replace(f"{pattern}>", f'{pattern}{role} aria-label="{html.escape(name)}">')
        return body

    @property
    def lists(self) -> int:
        """Return how many nested lists are still open after the last comment."""
        return self.items[-1].depth + 1 if self.items else 0


def site_of(site_id: str) -> records.Site:
    """Return a site, and let its pages show the response to the current request in a frame."""
    is_post = flask.request.method == "POST"
    site = site_settings.current(site_id) if is_post else site_settings.get(site_id)
    flask.g.embedding = site
    return site


def _read_request(site: records.Site, *, base: str) -> _Request:
    thread, query = query_strings.read_thread(embed_queries.EmbedQuery, site)
    parameters.refuse_together(query, _EXCLUDED)
    if query.slug:
        query = msgspec.structs.replace(query, around=query.slug, slug=msgspec.UNSET)
    texts = page_language.of(query.lang, site)
    name = records.ThreadName(site.id, thread)
    default = thread_pages.ListingOrder(site.options.order)
    is_ordered = not (query.around or query.below or query.reply)
    order = (query.order or default) if is_ordered else thread_pages.ListingOrder.THREAD
    # If `page` names the thread, `url` is not needed; `page` was checked together with the thread.
    title, url = cleaning.clean_title(query.title), query.url or flask.request.args.get("page", "")
    url = thread_ids.page_url(url, thread, site) if url else ""
    lang = query.lang or ""
    asked = _Request(
        site=site,
        name=name,
        query=query,
        order=order,
        links=nesting.Links(base, name, order, query.limit, default, lang, title, url),
        access=thread_access.for_pages(site, thread_view.terms(name), context.now()),
        texts=texts,
    )
    flask.g.has_form = asked.has_form
    return asked


def _answer(asked: _Request, template: str) -> flask.Response:
    if asked.query.below:
        return _answer_below(asked, asked.query.below, template)
    source, site = _source(asked), asked.site
    is_checked = site.turnstile is not None
    return responses.page(
        source,
        site,
        responses.PageFormat(
            lambda found: _render(asked, template, nesting.page_comments(found), found, source),
            made_of=repr(
                (_RELEASE, site.origins, site.options, site.guard, is_checked, asked.access)
            ),
            kind=" ".join(
                (
                    template,
                    asked.texts.language,
                    asked.links.lang,
                    asked.links.base,
                    asked.query.reply or "",
                    repr((asked.links.title, asked.links.url)),
                )
            ),
            content_type=_HTML,
            describe=lambda found: _link_header(asked, found),
        ),
    )


def _source(asked: _Request) -> thread_pages.ListingPage:
    query = asked.query
    if query.around or query.reply:
        middle = query.around or query.reply or ""
        return thread_pages.Around(asked.site.scheme, asked.name, middle, asked.limits)
    return listings.source(asked.site, asked.name.id, asked.limits, order=asked.order)


def _answer_below(asked: _Request, comment_id: str, template: str) -> flask.Response:
    """Respond with a comment and its replies.

    The ETag is a digest of the bytes instead of the listing's tag, because the comment is read
    separately and may be older than the listing.
    """
    top = listed_comments.in_thread(asked.name, comment_id, field="below")
    source = thread_pages.Below(top, asked.limits)
    branch = source.page()
    comments = nesting.page_comments(branch)
    if asked.query.cursor is msgspec.UNSET:
        replies = msgspec.UNSET if branch.cursor else len(comments)
        comments.insert(0, presentation.comment(top, replies))
    made = _render(asked, template, comments, branch, source)
    response = responses.cacheable(made, content_type=_HTML)
    response.headers.update(_link_header(asked, branch))
    return response


def _link_header(asked: _Request, found: presentation.ThreadPage) -> dict[str, str]:
    """Return a Link header for the next page, so that site generators need not parse the HTML."""
    query = asked.next(found.cursor).partition("?")[2]
    return {"Link": f'<?{query}>; rel="next"'} if query else {}


def _render(
    asked: _Request,
    template: str,
    comments: list[presentation.PublicComment],
    found: presentation.ThreadPage,
    source: thread_pages.ListingPage,
) -> bytes:
    about = source.heading()
    shown = _PageValues(
        title=about.title if about else "",
        address=thread_info.address(about.url, asked.site) if about else "",
        total=found.total,
        items=nesting.items(comments, asked.order),
        pinned=nesting.pinned_comments(found),
        links=asked.links,
        is_first=asked.is_first,
        is_ordered=not (asked.query.around or asked.query.below or asked.query.reply),
        next=asked.next(found.cursor),
        options=asked.site.options,
        access=asked.access,
        texts=asked.texts,
        may_write=asked.may_write,
        form=_form(asked, found) if asked.has_form else None,
    )
    data = json_ld.posting(
        title=shown.title,
        address=shown.address,
        total=shown.total,
        items=shown.items,
        texts=asked.texts,
    )
    made = flask.render_template(
        template,
        **page_language.variables(asked.texts),
        shown=shown,
        d=nesting,
        avatars=avatars,
        data=data,
        root=_root(),
    )
    return made.encode()


def _form(asked: _Request, found: presentation.ThreadPage) -> plain_form.Form:
    key = plain_form.key_of(asked.name, found)
    form = plain_form.of(asked.site, asked.links, key, context.settings())
    about = plain_form.About(asked.links.title, asked.links.url)
    parent = found.around if asked.query.reply else ""  # The query may name a slug or a former id
    return msgspec.structs.replace(form, about=about, parent=parent)


def _root() -> str:
    """Return the relative path to the service's root, because a proxy may add a path prefix."""
    return "../" * (flask.request.path.count("/") - 1)
