"""Get started: the lines for a new site's pages, the check of a page, and the end of the setup.

All state is in the store, so an owner can leave this page at any step and return later. Until the
setup is finished, the home page links to this page.
"""

from datetime import datetime
from http import HTTPStatus
from urllib.parse import urlsplit

import flask
import markupsafe
import msgspec

from comments import errors
from comments.domain import records
from comments.domain.text.addresses import host_names
from comments.limits import rate_limits
from comments.sites import page_check, site_settings, site_setup
from comments.web import recipes
from comments.web.admin import site_visit
from comments.web.admin.form_types import site_forms
from comments.web.http import context, responses
from comments.web.rendering import labels, page_text

blueprint = site_visit.owner_blueprint("start")


@blueprint.page("/start")
def show(visit: site_visit.Visit, _query: object) -> flask.Response:
    """Show the steps, and the lines to add to pages."""
    return _page(visit)


@blueprint.page("/start/state")
def tell(visit: site_visit.Visit, _query: object) -> flask.Response:
    """Tell the page's script, with an ETag, whether a page of the site was seen."""
    state = _state(visit.site, site_setup.get(visit.site.id), visit.now)
    return responses.cacheable(msgspec.json.encode(state))


@blueprint.form("/start/check", site_forms.PageForm)
def check(visit: site_visit.Visit, sent: site_forms.PageForm) -> flask.Response:
    """Fetch a page of the site, and show what is wrong with it."""
    secret = context.settings().secret
    if not rate_limits.take(page_check.LIMIT, visit.site.id, secret, now=visit.now):
        return _page(visit, sent.page, problem=labels.text("admin.start-often"), status=429)
    try:
        findings = page_check.findings(sent.page, visit.site, context.service_url())
    except errors.BadInput as error:
        return _page(visit, sent.page, problem=labels.problem(error), status=400)
    return _page(visit, sent.page, findings=findings)


@blueprint.form("/start/origin", site_forms.OriginForm)
def add_origin(visit: site_visit.Visit, sent: site_forms.OriginForm) -> flask.Response:
    """Add to the site an origin at which one of its pages was seen."""
    noted = site_visit.audit_entry(visit, "")
    site_settings.change(visit.site.id, added_origins=(sent.origin,), noted=noted)
    return site_visit.redirect_with_notice(visit, "start", "check")


@blueprint.form("/start/done")
def finish(visit: site_visit.Visit, _sent: object) -> flask.Response:
    """Finish the setup, and say what to do next."""
    site_setup.finish(visit.site.id)
    return site_visit.redirect_with_notice(visit, "start", "ready")


class _State(msgspec.Struct, frozen=True):
    """The state of the check: its name, a sentence, and the unlisted origins that were seen."""

    name: str
    said: str
    wrong: tuple[str, ...]


def _state(site: records.Site, setup: site_setup.SiteSetup, now: datetime) -> _State:
    wrong = tuple(entry.origin for entry in setup.wrong_of(site, now=now))
    if setup.first is not None:
        text = labels.text(
            "admin.start-seen", origin=setup.origin, moment=labels.moment(setup.first)
        )
        return _State("seen", text, wrong)
    if wrong:
        return _State("wrong", labels.text("admin.start-wrong"), wrong)
    return _State("waiting", labels.text("admin.start-waiting"), wrong)


def _page(
    visit: site_visit.Visit,
    page: str = "",
    *,
    findings: list[page_check.Finding] | None = None,
    problem: str = "",
    status: int = HTTPStatus.OK,
) -> flask.Response:
    setup, service = site_setup.get(visit.site.id), context.service_url()
    response = site_visit.page(
        "start.html",
        visit,
        setup=setup,
        state=_state(visit.site, setup, context.now()),
        recipes={
            system: [
                (recipe, _text_of(recipe))
                for recipe in recipes.of(system, service=service, site=visit.site.snippet_id)
            ]
            for system in recipes.SYSTEMS
        },
        service=service,
        staff_address=f"{setup.origin}/#moderate",
        is_mixed=_is_mixed(visit.site, service),
        no_origin=site_setup.NO_ORIGIN,
        page=page or next(iter(visit.site.origins), ""),
        findings=findings,
        problem=problem,
    )
    response.status_code = status
    return response


def _text_of(recipe: recipes.Recipe) -> markupsafe.Markup:
    """Return the text that says where a recipe's lines belong."""
    code = markupsafe.Markup("<code>{}</code>")
    codes = {name: code.format(value) for name, value in recipe.codes.items()}
    return page_text.text(f"admin.recipe-{recipe.name}", **codes)


def _is_mixed(site: records.Site, service: str) -> bool:
    """Return whether browsers refuse to load the script because only the page uses HTTPS.

    Browsers do load it if the service runs on the same machine as the browser.
    """
    own = urlsplit(service)
    has_https = any(origin.startswith("https:") for origin in site.origins)
    return own.scheme == "http" and has_https and not host_names.is_local(own.hostname or "")
