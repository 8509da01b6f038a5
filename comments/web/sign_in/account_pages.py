"""Pages of the admin console for sign-in, sign-out, invitations, and the user's own account.

A GET shows a form and changes nothing. The form's POST redirects to the next page or shows the form
again with the error. A one-time link contains its key in the fragment of its address. Browsers do
not send fragments, so opening the link does not reveal the key, and the server returns the same
page for every key. A wrong name and a wrong password get the same response (`password_login`).
"""

from collections.abc import Callable, Sequence
from datetime import datetime

import flask
import markupsafe

from comments import errors
from comments.accounts import accounts, moderation_sessions, passkeys, security_log, sessions
from comments.accounts.links import address_links, first_owner, invitations
from comments.accounts.oidc import linking, providers
from comments.accounts.passwords import credentials, password_login, recovery_codes, totp
from comments.web.http import context
from comments.web.http.decode import forms, parameters
from comments.web.rendering import labels
from comments.web.sign_in import account_forms, security_entries, signed_in

blueprint = flask.Blueprint("admin", __name__, url_prefix="/admin")
signed_in.protect(blueprint)


@blueprint.get("/<path:rest>")
def miss(rest: str) -> flask.Response:
    """Show the error page for an unknown address."""
    raise errors.NotFound("page", rest)


@blueprint.get("/sign-in")
def ask_who() -> flask.Response:
    """Show the sign-in form."""
    return sign_in_page()


@blueprint.post("/sign-in")
@signed_in.open_to_all
def sign_in() -> flask.Response:
    """Start a new session, and end the browser's previous session."""
    sent = forms.read(account_forms.SignIn)
    attempt = password_login.LoginAttempt(sent.login, sent.password, sent.code, signed_in.cookie())
    try:
        session = password_login.sign_in(attempt, signed_in.cause())
    except password_login.Wrong as error:
        return sign_in_page(labels.problem(error), status=403, login=sent.login)
    return signed_in.set_cookie(signed_in.redirect_to("admin"), session)


@blueprint.post("/sign-out")
def sign_out() -> flask.Response:
    """End the current session."""
    forms.read(parameters.NoForm)
    sessions.end(signed_in.cookie(), _secret())
    return signed_in.delete_cookie(signed_in.redirect_to("admin/sign-in"))


@blueprint.post("/sign-out/everywhere")
def sign_out_everywhere() -> flask.Response:
    """End all sessions of the account."""
    forms.read(parameters.NoForm)
    accounts.end_sessions(signed_in.require_account().id, signed_in.cause())
    return signed_in.delete_cookie(signed_in.redirect_to("admin/sign-in"))


@blueprint.get("/welcome")
def ask_for_an_account() -> flask.Response:
    """Show the page for an invitation link."""
    return welcome_page(account_forms.Accepted())


@blueprint.post("/welcome")
@signed_in.open_to_all
def accept() -> flask.Response:
    """Create an account for an invitation."""
    sent = forms.read(account_forms.Accepted)
    form = invitations.SignUpForm(sent.name, sent.login, sent.password, sent.email.strip())
    try:
        session = invitations.accept(
            sent.token, form, signed_in.cause(), browser=signed_in.cookie()
        )
    except (errors.BadInput, errors.Conflict) as error:
        return _welcome_again(error, sent)
    first_owner.remove(context.settings())
    return signed_in.set_cookie(signed_in.redirect_to("admin"), session)


@blueprint.post("/welcome/accept")
@signed_in.open_to_all
def accept_as_oneself() -> flask.Response:
    """Accept an invitation with the account that is signed in."""
    token, account = forms.read(account_forms.OneTimeLinkForm).token, signed_in.current_account()
    sent = account_forms.Accepted(token=token)
    if account is None:
        return welcome_page(sent, labels.text("admin.welcome-sign-in-first"), status=403)
    cause = signed_in.cause()
    try:
        invitations.accept_as(account.id, token, cause)
    except (errors.BadInput, errors.Conflict, errors.Forbidden) as refused:
        return _welcome_again(refused, sent)
    first_owner.remove(context.settings())
    return _renew_session(account.id, cause.now)


@blueprint.get("/reset")
def ask_for_a_password() -> flask.Response:
    """Show the page for a password reset link."""
    return signed_in.page("admin/reset.html", sent=account_forms.PasswordResetForm())


@blueprint.post("/reset")
@signed_in.open_to_all
def reset() -> flask.Response:
    """Set a password with a reset link."""
    sent = forms.read(account_forms.PasswordResetForm)
    choice = invitations.PasswordReset(sent.password, sent.code, signed_in.cookie())
    try:
        session = invitations.reset_password(sent.token, choice, signed_in.cause())
    except (errors.BadInput, errors.TooMany) as error:
        status, text = signed_in.refuse_form(error), _problem_of_link(error)
        return signed_in.page("admin/reset.html", status=status, problem=text, sent=sent)
    return signed_in.set_cookie(signed_in.redirect_to("admin"), session)


@blueprint.get("/account")
def show_account() -> flask.Response:
    """Show the account page."""
    return account_page(signed_in.require_account())


@blueprint.post("/account/password")
def change_password() -> flask.Response:
    """Change the password, which ends the account's other sessions."""
    sent, mine = forms.read(account_forms.NewPassword), signed_in.require_account()

    def change(account: str, cause: security_log.Cause) -> None:
        known = accounts.login_and_address(mine, cause.secret, now=cause.now)
        hashed = credentials.check_and_hash(sent.password, *known)
        credentials.set_password(account, hashed, cause)

    return _change_account(sent.current, change)


@blueprint.post("/account/address")
def request_address() -> flask.Response:
    """Mail a link to a new address, which confirms it."""
    sent, mine = forms.read(account_forms.NewAddress), signed_in.require_account()
    try:
        check_password(mine, sent.current)
        address_links.request(mine, sent.email.strip(), signed_in.cause())
    except (errors.BadInput, errors.Conflict, password_login.Wrong) as error:
        return account_page(mine, error)
    return account_page(mine, asked=sent.email.strip())


@blueprint.get("/address")
def ask_for_an_address() -> flask.Response:
    """Show the page for the link that confirms an address."""
    return signed_in.page("admin/address.html", token="")


@blueprint.post("/address")
@signed_in.open_to_all
def confirm_address() -> flask.Response:
    """Give the account that is signed in the address of a link."""
    token, account = forms.read(account_forms.OneTimeLinkForm).token, signed_in.current_account()
    if account is None:
        text = labels.text("admin.welcome-sign-in-first")
        return signed_in.page("admin/address.html", status=403, problem=text, token=token)
    cause = signed_in.cause()
    try:
        address_links.confirm(account.id, token, cause)
    except (errors.BadLink, errors.Conflict) as error:
        status, text = signed_in.refuse_form(error), _problem_of_link(error)
        return signed_in.page("admin/address.html", status=status, problem=text, token=token)
    return _renew_session(account.id, cause.now, then="admin/account#confirmed")


@blueprint.post("/account/authenticator")
def add_authenticator() -> flask.Response:
    """Enable an authenticator app after checking a code from the app; show the recovery codes."""
    sent, codes = forms.read(account_forms.NewAuthenticator), recovery_codes.make()

    def change(account: str, cause: security_log.Cause) -> None:
        step = totp.check_first_code(sent.key, sent.code, now=cause.now)
        recovery = recovery_codes.hash_all(codes)
        credentials.set_totp(account, sent.key, step, cause, recovery=recovery)

    return _change_account(sent.current, change, codes, sent.key)


@blueprint.post("/account/recovery")
def renew_recovery_codes() -> flask.Response:
    """Replace the recovery codes, and show the new ones."""
    sent, codes = forms.read(account_forms.Confirmed), recovery_codes.make()

    def change(account: str, cause: security_log.Cause) -> None:
        credentials.set_recovery_codes(account, recovery_codes.hash_all(codes), cause)

    return _change_account(sent.current, change, codes)


@blueprint.post("/account/authenticator/remove")
def remove_authenticator() -> flask.Response:
    """Disable the authenticator app."""
    sent = forms.read(account_forms.Confirmed)

    def change(account: str, cause: security_log.Cause) -> None:
        credentials.set_totp(account, "", 0, cause)

    return _change_account(sent.current, change)


@blueprint.post("/account/moderation/end")
def end_moderation() -> flask.Response:
    """End the account's moderation session on pages of a site."""
    sent = forms.read(account_forms.EndedSession)
    moderation_sessions.revoke(signed_in.require_account().id, sent.session)
    return signed_in.redirect_to("admin/account")


def sign_in_page(problem: str = "", *, status: int = 200, login: str = "") -> flask.Response:
    """Render the sign-in form; after an error, with the problem and the sent name."""
    party = passkeys.relying_party(context.service_url())
    return signed_in.page(
        "admin/sign_in.html",
        status=status,
        problem=problem,
        login=login,
        passkeys=party is not None,
    )


def welcome_page(
    sent: account_forms.Accepted, problem: str = "", *, status: int = 200, field: str = ""
) -> flask.Response:
    """Render the page for an invitation link; after an error, with the sent values and the problem.

    While the service has no owner, the page is for the link that creates the first owner. The
    server cannot see which link was opened, because the key is in the fragment. The first owner has
    an account only if the browser is signed in.
    """
    is_owned = accounts.is_owned()
    return signed_in.page(
        "admin/welcome.html",
        status=status,
        problem=problem,
        sent=sent,
        kept={},
        refused={"field": field, "said": problem},
        is_owned=is_owned,
        has_account=is_owned or signed_in.current_account() is not None,
    )


def offer_providers(blueprint: flask.Blueprint) -> None:
    """Give a blueprint's templates the list of sign-in providers."""
    blueprint.context_processor(lambda: {"providers_of_desk": providers.of_console})


def account_page(
    account: accounts.Account,
    error: errors.FlatthreadError | None = None,
    key: str = "",
    asked: str = "",
) -> flask.Response:
    """Render the account page, with an error if there is one.

    `asked` is the address to which a link has just been mailed. `key` is an authenticator's secret
    that the app may know already; without one, it is a new one.
    """
    if not key or getattr(error, "field", "") == "key":
        key = totp.secret()
    login = account.login or account.name
    address = totp.address(key, service=labels.text("admin.service"), login=login)
    known = providers.every()
    linked = linking.issuers_of(account.id, tuple(provider.issuer for provider in known))
    return signed_in.page(
        "admin/account.html",
        status=200 if error is None else signed_in.refuse_form(error),
        account=account,
        asked=asked,
        sends_mail=signed_in.cause().sends_mail,
        mail_address=accounts.readable_address(account, _secret(), now=context.now()),
        key=key,
        address=address,
        code="" if account.has_totp else _qr_code(address),
        ways=[provider for provider in known if provider.at_desk or provider.issuer in linked],
        linked=linked,
        moderating=moderation_sessions.of_account(account, now=context.now()),
        passkeys=passkeys.list_passkeys(account.id),
        may_add_passkeys=passkeys.relying_party(context.service_url()) is not None,
        log=security_entries.of(account.id),
    )


offer_providers(blueprint)


def check_password(account: accounts.Account, password: str) -> None:
    """Check the signed-in account's password once more.

    Raises:
        password_login.Wrong: the password is wrong.
        errors.TooMany: there were too many attempts.
    """
    try:
        password_login.confirm(account.id, password, signed_in.cause())
    except password_login.Wrong:
        raise password_login.Wrong(field="current") from None


def confirm(account: accounts.Account, password: str) -> None:
    """Check the password once more, unless the account signs in only through a provider.

    Raises:
        password_login.Wrong, errors.TooMany: see `check_password`.
    """
    if account.has_password:
        check_password(account, password)


def _change_account(
    password: str,
    change: Callable[[str, security_log.Cause], None],
    codes: Sequence[str] = (),
    key: str = "",
) -> flask.Response:
    """Change the signed-in account, after checking its password. Attempts are rate-limited.

    Afterwards, show new recovery codes if there are any, which is the only time that they are
    shown, or else the home page.
    """
    account, cause = signed_in.require_account(), signed_in.cause()
    try:
        check_password(account, password)
        change(account.id, cause)
    except (errors.BadInput, password_login.Wrong) as error:
        return account_page(account, error, key)
    return _renew_session(account.id, cause.now, codes)


def _qr_code(address: str) -> markupsafe.Markup:
    """Return the QR code of an address, as SVG."""
    import segno  # noqa: PLC0415 - only this page needs it

    code = segno.make(address, micro=False)
    return markupsafe.Markup(code.svg_inline(omitsize=True))  # noqa: S704 - has no text


def _renew_session(
    account: str, now: datetime, codes: Sequence[str] = (), *, then: str = "admin"
) -> flask.Response:
    """Begin a new session, because the change ended all of the account's sessions."""
    session = sessions.begin(account, _secret(), now=now)
    if not codes:
        return signed_in.set_cookie(signed_in.redirect_to(then), session)
    signed_in.use(session)
    shown = [recovery_codes.in_groups(code) for code in codes]
    return signed_in.set_cookie(signed_in.page("admin/recovery_codes.html", codes=shown), session)


def _welcome_again(error: errors.FlatthreadError, sent: account_forms.Accepted) -> flask.Response:
    said, status = _problem_of_link(error), signed_in.status_of(error)
    return welcome_page(sent, said, status=status, field=getattr(error, "field", ""))


def _problem_of_link(error: errors.FlatthreadError) -> str:
    """Return the message for an error in a form that a one-time link opened."""
    is_link = isinstance(error, errors.BadLink)
    return labels.text("admin.link-used") if is_link else labels.problem(error)


def _secret() -> str:
    return context.settings().secret
