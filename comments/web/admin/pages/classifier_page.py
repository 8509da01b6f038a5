"""The settings of a site's classifiers and of Turnstile, for owners.

Pages never show stored secrets. A new secret is shown once, in the response to the request that
created it.
"""

import flask

from comments import errors
from comments.domain.moderation import classifier_verdicts, ruling_texts
from comments.events import safe_http
from comments.moderation.classifiers import classifier_requests, registration
from comments.sites import site_settings, turnstile_settings
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields, settings_forms
from comments.web.rendering import labels

blueprint = site_visit.owner_blueprint("advisers")


@blueprint.page("/advisers")
def show(visit: site_visit.Visit, _query: object) -> flask.Response:
    """Show the forms."""
    return _page(visit)


@blueprint.form("/advisers", settings_forms.ClassifierForm)
def change(visit: site_visit.Visit, sent: settings_forms.ClassifierForm) -> flask.Response:
    """Enable, change or disable a classifier, or rotate its secret."""
    site = visit.site.id
    by = registration.By(visit.account.actor, visit.now, site_visit.settings(), sent.reason)
    if sent.act == "remove":
        registration.remove(site, sent.name, by)
        return _page(visit, said=_disabled_text(ruling_texts.classifier(sent.name)))
    terms = registration.Terms(bool(sent.holds), bool(sent.shows), bool(sent.everybody))
    made = ""
    if sent.act == "rotate":
        if sent.name != classifier_verdicts.WEBHOOK:
            raise errors.BadInput("act", "bad-form")
        made = registration.rotate(site, by, keeps_old=True)
    elif sent.name == classifier_verdicts.AKISMET:
        key = form_fields.require("key", sent.key).strip()
        registration.set_akismet(site, key, terms, by, _client())
    else:
        url = form_fields.require("url", sent.url)
        made = registration.set_webhook(site, url, terms, by, _client())
    return _page(visit, said=labels.text("admin.classifiers-saved"), made=made)


@blueprint.form("/turnstile", settings_forms.TurnstileForm)
def change_turnstile(visit: site_visit.Visit, sent: settings_forms.TurnstileForm) -> flask.Response:
    """Enable, change or disable Turnstile."""
    site = visit.site.id
    noted = site_visit.audit_entry(visit, sent.reason)
    if sent.act == "remove":
        turnstile_settings.remove(site, noted=noted)
        return _page(visit, said=_disabled_text(labels.text("admin.turnstile-title")))
    key = form_fields.require("key", sent.key).strip()
    given = turnstile_settings.TurnstileInput(key, sent.secret.strip(), refuses=bool(sent.refuses))
    turnstile_settings.set_up(
        site, given, settings=site_visit.settings(), now=visit.now, noted=noted
    )
    return _page(visit, said=labels.text("admin.classifiers-saved"))


def _disabled_text(name: str) -> str:
    return labels.text("admin.classifiers-disabled", classifier=name)


def _client() -> safe_http.HttpClient:
    return classifier_requests.OUTBOUND.get()


def _page(visit: site_visit.Visit, said: str = "", made: str = "") -> flask.Response:
    by_name = {entry.name: entry for entry in registration.every(visit.site.id)}
    return site_visit.page(
        "advisers.html",
        visit,
        advisers=by_name,
        turnstile=site_settings.get(visit.site.id).turnstile,
        said=said,
        made=made,
    )


blueprint.show_again(show)
