"""The providers with which people sign in, for owners of the service.

The page does the same as the command `provider`. An owner confirms every change with their own
password, because a provider can sign in owners and moderators. A client secret is never shown.
"""

from collections.abc import Callable

import flask

from comments import errors
from comments.accounts import accounts
from comments.accounts.oidc import id_tokens, login_flow, providers
from comments.accounts.passwords import password_login
from comments.events import audit_log, message_sender
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields, people_forms
from comments.web.http import context
from comments.web.rendering import labels
from comments.web.sign_in import account_pages, signed_in

blueprint = site_visit.service_blueprint("provider_registration", "providers")


@blueprint.page("")
def show(owner: accounts.Account, _query: object) -> flask.Response:
    """List the providers, with forms to change them and to add one."""
    return _page(owner)


@blueprint.form("", people_forms.ProviderForm)
def add(owner: accounts.Account, sent: people_forms.ProviderForm) -> flask.Response:
    """Add a provider that answers; nobody can use it yet."""
    account_pages.confirm(owner, sent.current)
    name = sent.name.strip()
    registration = providers.Registration(
        name, sent.title.strip() or name, sent.issuer.strip(), sent.client.strip(), sent.secret
    )
    made = providers.make(registration, context.settings().secret, now=context.now())
    _check(made)
    providers.add(made, noted=_audit_entry())
    return _page(owner, said=labels.text("admin.providers-added", name=made.title))


@blueprint.form("/change", people_forms.ProviderChangeForm)
def change(owner: accounts.Account, sent: people_forms.ProviderChangeForm) -> flask.Response:
    """Check a provider, change who can use it, or remove it."""
    stored = providers.by_name(sent.name, providers.every())
    if sent.act != "check":
        account_pages.confirm(owner, sent.current)
    _ACTS[sent.act](stored, sent)
    return _page(owner, said=labels.text(f"admin.providers-did-{sent.act}", name=stored.title))


def _check(provider: providers.Provider) -> None:
    login_flow.client(provider, context.settings(), message_sender.OUTBOUND.get()).check()


def _audit_entry() -> audit_log.Noted:
    return site_visit.service_audit_entry("set-provider")


def _save(provider: providers.Provider, sent: people_forms.ProviderChangeForm) -> None:
    sites, at_desk = form_fields.several(sent.sites), bool(sent.staff)
    # First, because it checks the sites.
    providers.offer(provider.name, sites, at_desk=at_desk, noted=_audit_entry())
    others = [site for site in provider.sites if site not in sites]
    providers.withdraw(provider.name, others, at_desk=not at_desk, noted=_audit_entry())


_ACTS: dict[str, Callable[[providers.Provider, people_forms.ProviderChangeForm], None]] = {
    "check": lambda provider, _sent: _check(provider),
    "save": _save,
    "remove": lambda provider, _sent: providers.remove(provider.name, noted=_audit_entry()),
}


def _page(owner: accounts.Account, *, said: str = "") -> flask.Response:
    url = context.settings().public_url
    return signed_in.page(
        "admin/providers.html",
        said=said,
        providers=providers.every(),
        redirect=f"{url}/{login_flow.RETURN}" if url else "",
        has_password=owner.has_password,
    )


blueprint.show_again(
    show, errors.NotFound, errors.TooMany, errors.Unreachable, id_tokens.NotBelieved,
    password_login.Wrong,
)  # fmt: skip
