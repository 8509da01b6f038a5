"""How the readers of a site sign in, for the site's owners: its providers, and its own keys.

The operations on keys are those of the command `site-key`. The secret of a key is shown once, in
the response to the form that created the key.
"""

import flask

from comments.accounts import site_keys
from comments.accounts.oidc import providers
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields, settings_forms
from comments.web.rendering import labels

blueprint = site_visit.owner_blueprint("reader_sign_in")


@blueprint.page("/sign-in")
def show(visit: site_visit.Visit, _query: object) -> flask.Response:
    """Show the providers and the keys of the site."""
    return _page(visit)


@blueprint.form("/sign-in/keys", settings_forms.SiteKeyForm)
def change_keys(visit: site_visit.Visit, sent: settings_forms.SiteKeyForm) -> flask.Response:
    """Create a key with a secret, add a public key, or revoke a key."""
    site = visit.site.id
    noted = site_visit.audit_entry(visit, "", "set-key")
    if sent.act == "remove":
        site_keys.remove(site, form_fields.require("id", sent.id), noted=noted)
        return _page(visit, said=labels.text("admin.site-keys-removed"))
    if sent.act == "public":
        pem = form_fields.require("public", sent.public)
        site_keys.add(site, site_keys.make_public(pem, now=visit.now), noted=noted)
        return _page(visit, said=labels.text("admin.site-keys-added"))
    made, secret = site_keys.make_shared(site_visit.settings().secret, now=visit.now)
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


blueprint.show_again(show)
