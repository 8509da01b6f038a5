"""The number of distinct commenters in a combination of sources, for a site's owners.

The page counts the same as the command `stats audience`, but one scan reads at most `_MOST` rows.
"""

import functools

import flask

from comments import errors
from comments.domain import records
from comments.domain.counters import audiences
from comments.domain.ids import thread_ids
from comments.threads import thread_aliases
from comments.tree.counters import audience_scan
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields, site_forms
from comments.web.rendering import labels
from comments.web.sign_in import signed_in

blueprint = site_visit.owner_blueprint("audiences")

_MOST = 50_000  # Maximum number of rows; scanning them takes about half a second
_NAME = "audience"  # The only audience of the question


@blueprint.page("/audiences", site_forms.AudienceCountQuery)
def show(visit: site_visit.Visit, query: site_forms.AudienceCountQuery) -> flask.Response:
    """Show the form and, if it names sources, the number of commenters."""
    if not (query.every or query.some or query.but):
        return site_visit.page("audiences.html", visit, query=query, count=None, problem="")
    try:
        (counted,) = audience_scan.count(visit.site.id, _question(visit.site, query), most=_MOST)
    except errors.BadInput as error:
        response = site_visit.page(
            "audiences.html", visit, query=query, count=None, problem=labels.problem(error)
        )
        response.status_code = signed_in.status_of(error)
        return response
    return site_visit.page(
        "audiences.html", visit, query=query, count=counted.commenters, problem=""
    )


def _question(site: records.Site, query: site_forms.AudienceCountQuery) -> audiences.Question:
    if not (query.every or query.some):
        raise errors.BadInput("every", "required")
    given = {"all": query.every, "any": query.some, "but": query.but}
    forms = {
        name: [_form(site, source) for source in form_fields.phrases(line)]
        for name, line in given.items()
    }
    asked = audiences.question({_NAME: forms})
    asked.translate_threads(functools.partial(thread_aliases.stored_id, site))
    return asked


def _form(site: records.Site, source: str) -> dict[str, object]:
    form = audiences.source_form(source)
    thread = str(form.get("thread", ""))
    return {"thread": thread_ids.page_id(thread, site)} if "://" in thread else form
