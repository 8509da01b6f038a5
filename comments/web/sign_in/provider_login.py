"""Sign in owners and moderators through a provider.

A POST shows a page that redirects to the provider. `login_window_page` handles all returns from
providers, and calls `arrive` for the admin console. Linking a provider requires the password.
Otherwise, an attacker with an abandoned session could add a permanent way to sign in.
"""

from collections.abc import Mapping

import flask

from comments import errors
from comments.accounts import accounts, sessions
from comments.accounts.links import first_owner
from comments.accounts.oidc import linking, login_flow, oidc_client, providers
from comments.accounts.passwords import password_login
from comments.web.http import context
from comments.web.http.decode import forms, parameters
from comments.web.rendering import labels
from comments.web.sign_in import account_forms, account_pages, provider_redirects, signed_in

_CONSOLE: Mapping[str, object] = {}  # The console's sign-in form needs no values of its own.
blueprint = flask.Blueprint("providers", __name__, url_prefix="/admin")
signed_in.protect(blueprint)
account_pages.offer_providers(blueprint)


class _ProviderName(parameters.NoForm, frozen=True):
    """A provider's name."""

    provider: parameters.Typed


class _Invited(_ProviderName, frozen=True):
    """A form with an invitation's key and the new account's display name."""

    token: parameters.Typed = ""
    name: parameters.Typed = ""


class _Linking(account_forms.Confirmed, frozen=True):
    """A form with a provider's name and the password of the signed-in account."""

    provider: parameters.Typed


class _Step(account_forms.OneTimeLinkForm, frozen=True):
    """A form with an authenticator's code, and the token of the login that the code completes."""

    code: parameters.Typed


@blueprint.post("/sign-in/provider")
@signed_in.open_to_all
def sign_in() -> flask.Response:
    """Start a sign-in through a provider."""
    provider = _chosen_provider(forms.read(_ProviderName).provider)
    goal = login_flow.Goal(
        login_flow.LoginPurpose.CONSOLE, provider.name, session=signed_in.cookie()
    )
    return provider_redirects.redirect_to_provider(goal, provider)


@blueprint.post("/sign-in/code")
@signed_in.open_to_all
def show_code() -> flask.Response:
    """Complete a provider login with the code from the account's authenticator app."""
    sent = forms.read(_Step)
    come = finish(sent.token, sent.code)
    return come if isinstance(come, flask.Response) else _welcome(come)


@blueprint.post("/welcome/provider")
@signed_in.open_to_all
def accept() -> flask.Response:
    """Start accepting an invitation through a provider."""
    sent = forms.read(_Invited)
    provider = _chosen_provider(sent.provider)
    try:
        name = accounts.clean_name(sent.name) if sent.name.strip() else ""
    except errors.BadInput as error:
        form = account_forms.Accepted(token=sent.token, name=sent.name)
        text, status = labels.problem(error), signed_in.status_of(error)
        return account_pages.welcome_page(form, text, status=status)
    goal = login_flow.Goal(
        login_flow.LoginPurpose.INVITATION,
        provider.name,
        invitation=sent.token,
        name=name,
        session=signed_in.cookie(),
    )
    return provider_redirects.redirect_to_provider(goal, provider)


@blueprint.post("/account/provider")
def link() -> flask.Response:
    """Start linking a provider to the current account."""
    sent, account = forms.read(_Linking), signed_in.require_account()
    provider = _chosen_provider(sent.provider)
    try:
        account_pages.check_password(account, sent.current)
    except password_login.Wrong as error:
        return account_pages.account_page(account, error)
    goal = login_flow.Goal(
        login_flow.LoginPurpose.LINK, provider.name, account=account.id, epoch=account.epoch
    )
    return provider_redirects.redirect_to_provider(goal, provider)


@blueprint.post("/account/provider/remove")
def unlink() -> flask.Response:
    """Unlink a provider from the current account."""
    sent, account = forms.read(_Linking), signed_in.require_account()
    # A linked provider can be unlinked even if the service no longer offers that provider.
    provider = providers.by_name(sent.provider, providers.every())
    try:
        account_pages.check_password(account, sent.current)
    except password_login.Wrong as error:
        return account_pages.account_page(account, error)
    linking.unlink(account.id, provider.issuer, signed_in.cause())
    session = sessions.begin(account.id, context.settings().secret, now=context.now())
    return signed_in.set_cookie(signed_in.redirect_to("admin/account"), session)


def arrive(goal: login_flow.Goal, person: oidc_client.ProviderUser) -> flask.Response:
    """Complete a login flow, given the user that the provider identified."""
    cause, browser = signed_in.cause(), goal.session
    if goal.aim is login_flow.LoginPurpose.LINK:
        linking.link(goal.account, goal.epoch, person, cause)
        return signed_in.redirect_to("admin/account")
    if goal.aim is login_flow.LoginPurpose.INVITATION:
        come = linking.accept(goal.invitation, person, goal.name, cause, browser=browser)
        first_owner.remove(context.settings())
    else:
        come = linking.sign_in(person, cause, browser=browser)
    if isinstance(come, linking.CodeAsked):
        return code_form(come.token)
    return _welcome(come)


def code_form(
    token: str, values: Mapping[str, object] = _CONSOLE, *, status: int = 200, problem: str = ""
) -> flask.Response:
    """Show the form for an authenticator's code, which completes a sign-in through a provider.

    `token` identifies the login flow. The window for moderators shows the same form with other
    `values`, which are a different target and different hidden fields.
    """
    return signed_in.page(
        "admin/second_step.html", status=status, token=token, problem=problem, **values
    )


def finish(
    token: str, code: str, values: Mapping[str, object] = _CONSOLE
) -> sessions.Session | flask.Response:
    """Begin a session, or show the form again if the code is wrong."""
    try:
        return linking.finish(token, code, signed_in.cause(), browser=signed_in.cookie())
    except password_login.Wrong as error:
        problem = labels.text("admin.second-step-wrong")
        return code_form(token, values, status=signed_in.status_of(error), problem=problem)


def _welcome(session: sessions.Session) -> flask.Response:
    return signed_in.set_cookie(signed_in.redirect_to("admin"), session)


def _chosen_provider(name: str) -> providers.Provider:
    return providers.by_name(name, providers.of_console())
