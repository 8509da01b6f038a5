"""Posting without JavaScript: the responses to the form under `/embed`.

A successful post is answered with a redirect, so that reloading the next page does not send the
form again.

These calls use no cookies and no tokens, so the only authority that a page of another origin could
abuse is the reader's network. `cors` therefore refuses posts from such pages. No cache stores a
response. Two posts with the same content from the same network and page become one comment.
"""

import hashlib
from collections.abc import Mapping
from typing import Annotated

import flask
import msgspec

from comments import errors
from comments.domain import records
from comments.domain.languages import catalogue, error_texts
from comments.limits.site_request import SiteRequest
from comments.posting import admission, new_comment
from comments.reading import thread_pages
from comments.web.embedding import embed, embed_queries, plain_form
from comments.web.http import context, cors, problems
from comments.web.http.decode import forms, json_bodies, parameters, query_strings
from comments.web.rendering import nesting, page_language

blueprint = flask.Blueprint("plain_posting", __name__, url_prefix="/embed")
blueprint.after_request(embed.frame)
blueprint.register_error_handler(Exception, embed.show_error)

_SHOWN_FIELDS = {"name", "website", "body"}


class PlainComment(parameters.Request, frozen=True):
    """A new comment from a form without JavaScript.

    `key` comes from the page with the form. `parent`, `title`, `url` and `subject` are as in
    `comment_shapes.NewComment`.
    """

    name: str
    body: str
    key: Annotated[str, msgspec.Meta(min_length=16, max_length=64)]
    parent: parameters.CommentId | msgspec.UnsetType = msgspec.UNSET
    website: str = ""
    title: str = ""
    url: str = ""
    subject: str = ""


class _Place(msgspec.Struct, frozen=True):
    """The thread of a request, and the language of the response."""

    site: records.Site
    links: nesting.Links
    texts: catalogue.Catalogue


@blueprint.post("/<site_id>")
def post(site_id: str) -> flask.Response:
    """Post a comment.

    Redirect to the comment, or to a page that says that the comment awaits approval.
    """
    place = _place(site_id)
    site, links = place.site, place.links
    cors.check(site)
    if not site.options.forms:
        raise errors.Forbidden("forms-off")
    fields = forms.fields()
    request = context.request_to(site)
    try:
        sent = json_bodies.convert(fields, PlainComment)
        comment = new_comment.post(_submission(sent, links.name.id, request), request).comment
    except errors.CodedError as error:
        return _refusal(error, fields, place)
    # For anyone but its author, a shadowed comment must look like one that awaits approval.
    if comment.status is records.Status.APPROVED:
        name = records.ThreadName(site.id, comment.thread)  # A split may have moved the parent
        where = msgspec.structs.replace(links, name=name).around(comment.id)
    else:
        where = f"{site.id}/waiting{links.first()}"
    response = flask.redirect(where, 303)
    response.set_data(b"")  # Flask's own text would be in English
    return flask.make_response(response)


@blueprint.get("/<site_id>/waiting")
def show_waiting(site_id: str) -> flask.Response:
    """Show that a comment awaits approval."""
    place = _place(site_id)
    return _page(place, f"../{place.site.id}{place.links.first()}", root="../../")


def _place(site_id: str) -> _Place:
    site = embed.site_of(site_id)
    thread, query = query_strings.read_thread(embed_queries.FeedQuery, site)
    texts = page_language.of(query.lang, site)
    order, limit = thread_pages.ListingOrder.THREAD, parameters.DEFAULT_LIMIT
    name = records.ThreadName(site.id, thread)
    return _Place(site, nesting.Links("", name, order, limit, order, query.lang or ""), texts)


def _submission(sent: PlainComment, thread: str, request: SiteRequest) -> admission.Submission:
    parent, website = sent.parent or None, sent.website.strip()
    if website and "://" not in website:
        website = f"https://{website}"  # The widget does the same
    content = (request.sender.network, sent.name, website, sent.body, parent or "")
    joined = "\0".join((sent.key, *content))
    return admission.Submission(
        thread=thread,
        asked=flask.g.asked_thread,
        parent=parent,
        author=records.Author(sent.name, website),
        body=sent.body,
        title=sent.title,
        url=sent.url,
        key=hashlib.sha256(joined.encode()).hexdigest(),
        trap=sent.subject,
        is_plain=True,
    )


def _refusal(error: errors.CodedError, fields: Mapping[str, str], place: _Place) -> flask.Response:
    """Respond with the form, the reason for the refusal, and the text that was typed."""
    typed = {field: fields.get(field, "") for field in _SHOWN_FIELDS}
    back = f"{place.site.id}{place.links.first()}"
    flask.g.has_form = True

    def show(problem: problems.Problem) -> flask.Response:
        form = msgspec.structs.replace(
            plain_form.of(place.site, place.links, fields.get("key", ""), context.settings()),
            about=plain_form.About(fields.get("title", ""), fields.get("url", "")),
            parent=fields.get("parent", ""),
            typed=plain_form.Typed(**typed),
            problem=error_texts.sentence(error, place.texts),
            field=problem.field if problem.field in _SHOWN_FIELDS else "",
        )
        return _page(place, back, root="../", form=form)

    return problems.page(error, show)


def _page(
    place: _Place, back: str, *, root: str, form: plain_form.Form | None = None
) -> flask.Response:
    made = flask.render_template(
        "public/posting.html",
        **page_language.variables(place.texts),
        theme=place.site.options.theme,
        form=form,
        back=back,
        root=root,
    )
    return flask.Response(made, content_type="text/html; charset=utf-8")
