"""How the readers of a site sign in, for the site's owners: its providers, and its own keys.

The operations on keys are those of the command `site-key`. The secret of a key is shown once, in
the response to the form that created the key.
"""

from datetime import UTC, datetime

import flask

from comments.accounts import site_keys
from comments.accounts.oidc import providers
from comments.domain.moderation import roles
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields, settings_forms
from comments.web.http.decode import forms, query_strings
from comments.web.rendering import labels

blueprint = site_visit.blueprint("reader_sign_in")


@blueprint.get("/sign-in")
def show(site_id: str) -> flask.Response:
    """Show the providers and the keys of the site."""
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    query_strings.read(form_fields.EmptyQuery)
    return _page(visit)


@blueprint.post("/sign-in/keys")
def change_keys(site_id: str) -> flask.Response:
    """Create a key with a secret, add a public key, or revoke a key."""
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    sent, site, now = forms.read(settings_forms.SiteKeyForm), visit.site.id, datetime.now(UTC)
    noted = site_visit.audit_entry(visit, "", "set-key")
    if sent.act == "remove":
        site_keys.remove(site, form_fields.require("id", sent.id), noted=noted)
        return _page(visit, said=labels.text("admin.site-keys-removed"))
    if sent.act == "public":
        pem = form_fields.require("public", sent.public)
        site_keys.add(site, site_keys.make_public(pem, now=now), noted=noted)
        return _page(visit, said=labels.text("admin.site-keys-added"))
    made, secret = site_keys.make_shared(site_visit.settings().secret, now=now)
    site_keys.add(site, made, noted=noted)
    return _page(visit, said=labels.text("admin.site-keys-added"), made=secret)


def _page(visit: site_visit.Visit, said: str = "", made: str = "") -> flask.Response:
    return site_visit.page(
        "reader_sign_in.html",
        visit,
        providers=providers.of_site(visit.site.id),
        site_keys=site_keys.every(visit.site.id),
        most=site_keys.MOST,
        said=said,
        made=made,
    )


site_visit.show_again(blueprint, show)
