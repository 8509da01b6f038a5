"""The window in which a moderator lets a page of a site moderate the site's comments.

The widget opens the window on this service's origin, where the session cookie of the admin console
is first-party. The window names the site and the origin of the page, and says what the page may do.
Only the window's button grants access. A person who is not signed in, or who has no role on the
site, must first sign in within this window. After access is granted, the window sends a code to the
page that opened the window (`window_codes`).

The code is sent only to the exact origin that opened the window, which must be one of the site's
origins. Granting access requires a session with a role on the site, and the form token from this
window. Like the windows for readers, these pages stay connected to their opener and do not accept
messages. The sign-in is part of this window because pages under `/admin` would cut the connection.
Redirects lead only back to this window. The query of such a redirect contains the values that the
window checks.
"""

from urllib.parse import urlencode

import flask

from comments import errors
from comments.accounts import accounts, moderation_sessions, sessions
from comments.accounts.oidc import linking, login_flow, providers
from comments.accounts.passwords import password_login
from comments.domain import records
from comments.domain.moderation import roles
from comments.web.http import context
from comments.web.http.decode import forms, parameters, query_strings
from comments.web.rendering import labels
from comments.web.sign_in import (
    account_pages,
    provider_login,
    provider_redirects,
    signed_in,
    windows,
)

blueprint = windows.blueprint("moderation_window", "/moderate/sites")


class _SignIn(windows.WindowQuery, frozen=True):
    """The window's values, a name and password, and an authenticator's code if there is one."""

    login: parameters.Typed
    password: parameters.Typed
    code: parameters.Typed = ""


class _Step(windows.WindowQuery, frozen=True):
    """The values of the window, an authenticator's code, and the token of the login to complete."""

    token: parameters.Typed
    code: parameters.Typed


account_pages.offer_providers(blueprint)


@blueprint.get("/<site:site_id>")
def show(site_id: str) -> flask.Response:
    """Show what the page will be allowed to do, with the button; or show the sign-in form."""
    asked = query_strings.read(windows.WindowQuery)
    site = _site(site_id, asked)
    account = signed_in.current_account()
    if account is None:
        if flask.request.headers.get("Sec-Fetch-Site") in {"cross-site", "same-site"}:
            # The browser sent no cookie, because another site opened the window. The guard responds
            # with a page that reloads itself.
            raise signed_in.NotSignedIn
        return _sign_in_form(site, asked)
    if not _may_moderate(account, site):
        problem = labels.text("admin.moderate-no-role", name=account.name, site=site.id)
        return _sign_in_form(site, asked, status=403, problem=problem)
    hours = int(moderation_sessions.TERM.total_seconds() // 3600)
    return signed_in.page("admin/moderate.html", site=site, asked=asked, hours=hours)


@blueprint.post("/<site:site_id>")
def grant(site_id: str) -> flask.Response:
    """Let the page moderate, and show the code."""
    asked = forms.read(windows.WindowQuery)
    site, account = _site(site_id, asked), signed_in.require_account()
    if not _may_moderate(account, site):
        raise errors.Forbidden("not-allowed", role=roles.Role.MODERATOR, site=site.id)
    secret, now = context.settings().secret, context.now()
    code = moderation_sessions.grant(
        account, site.id, asked.origin, asked.challenge, secret=secret, now=now
    )
    return signed_in.page("admin/moderate_granted.html", code=code, origin=asked.origin)


@blueprint.post("/<site:site_id>/sign-in")
@signed_in.open_to_all
def sign_in(site_id: str) -> flask.Response:
    """Sign in with a password, and return to the page with the button."""
    sent = forms.read(_SignIn)
    site = _site(site_id, sent)
    attempt = password_login.LoginAttempt(sent.login, sent.password, sent.code, signed_in.cookie())
    try:
        session = password_login.sign_in(attempt, signed_in.cause())
    except password_login.Wrong as error:
        text = labels.problem(error)
        return _sign_in_form(site, sent, status=403, problem=text, login=sent.login)
    return _back(session, site.id, sent)


@blueprint.post("/<site:site_id>/provider")
@signed_in.open_to_all
def choose(site_id: str) -> flask.Response:
    """Send the moderator to the chosen provider."""
    sent = forms.read(windows.WindowProvider)
    site = _site(site_id, sent)
    provider = providers.by_name(sent.provider, providers.of_console())
    goal = login_flow.Goal(
        login_flow.LoginPurpose.MODERATE,
        provider.name,
        session=signed_in.cookie(),
        site=site.id,
        origin=sent.origin,
        challenge=sent.challenge,
    )
    return provider_redirects.redirect_to_provider(goal, provider)


@blueprint.post("/<site:site_id>/code")
@signed_in.open_to_all
def show_code(site_id: str) -> flask.Response:
    """Complete a provider login with the code from the account's authenticator app."""
    sent = forms.read(_Step)
    site = _site(site_id, sent)
    come = provider_login.finish(sent.token, sent.code, _step_form(site.id, sent))
    return come if isinstance(come, flask.Response) else _back(come, site.id, sent)


def arrive(goal: login_flow.Goal, come: sessions.Session | linking.CodeAsked) -> flask.Response:
    """Continue in the window after a provider has identified the moderator."""
    asked = windows.WindowQuery(goal.origin, goal.challenge)
    if isinstance(come, linking.CodeAsked):
        return provider_login.code_form(come.token, _step_form(goal.site, asked))
    return _back(come, goal.site, asked)


def _back(session: sessions.Session, site_id: str, asked: windows.WindowQuery) -> flask.Response:
    query = urlencode({"origin": asked.origin, "challenge": asked.challenge})
    return signed_in.set_cookie(signed_in.redirect_to(f"moderate/sites/{site_id}?{query}"), session)


def _sign_in_form(
    site: records.Site,
    asked: windows.WindowQuery,
    *,
    status: int = 200,
    problem: str = "",
    login: str = "",
) -> flask.Response:
    return signed_in.page(
        "admin/moderate_sign_in.html",
        status=status, site=site, asked=asked, problem=problem, login=login,
    )  # fmt: skip


def _step_form(site_id: str, asked: windows.WindowQuery) -> dict[str, object]:
    return {"asked": asked, "action": f"moderate/sites/{site_id}/code"}


def _may_moderate(account: accounts.Account, site: records.Site) -> bool:
    return account.may(roles.Right.MODERATE, site.id)


def _site(site_id: str, asked: windows.WindowQuery) -> records.Site:
    site = windows.site_of(site_id, asked)
    if not site.options.moderation:
        raise errors.Forbidden("moderation-off", site=site.id)
    return site
