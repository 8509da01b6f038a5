"""Add, remove and use passkeys of accounts (`accounts/passkeys`).

A script asks for the options of a ceremony, lets the browser make or use a passkey, and sends the
answer in a form. The cookie `__Host-flatthread-passkey` contains the token of the challenge, so an
answer is valid only in the browser that asked. Removing a passkey needs no script.
"""

from datetime import datetime

import flask
import msgspec

from comments import errors
from comments.accounts import passkeys, sessions
from comments.accounts.passwords import password_login
from comments.web.http import context
from comments.web.http.decode import forms, parameters
from comments.web.rendering import labels
from comments.web.sign_in import account_forms, account_pages, signed_in

COOKIE = "__Host-flatthread-passkey"
blueprint = flask.Blueprint("passkeys", __name__, url_prefix="/admin")
signed_in.protect(blueprint)
account_pages.offer_providers(blueprint)

_REFUSED = (
    errors.BadInput,
    errors.Conflict,
    errors.NotFound,
    passkeys.WrongPasskey,
    password_login.Wrong,
)


@blueprint.post("/account/passkeys/options")
def begin_registration() -> flask.Response:
    """Return the options for a new passkey, after checking the password."""
    sent, account = forms.read(account_forms.Confirmed), signed_in.require_account()
    try:
        account_pages.check_password(account, sent.current)
        options = passkeys.begin_registration(account, _party(), signed_in.cause())
    except _REFUSED as error:
        return _problem(error)
    return _options(options)


@blueprint.post("/account/passkeys")
def add() -> flask.Response:
    """Add a passkey, which ends the account's other sessions."""
    sent, session = forms.read(account_forms.NewPasskey), signed_in.require_session()
    cause = signed_in.cause()
    try:
        passkeys.register(session, _token(), sent.name, sent.answer, _party(), cause)
    except _REFUSED as error:
        return account_pages.account_page(session.account, error)
    return _renew_session(session, cause.now)


@blueprint.post("/account/passkeys/remove")
def remove() -> flask.Response:
    """Remove a passkey, which ends the account's other sessions."""
    sent, session = forms.read(account_forms.RemovedPasskey), signed_in.require_session()
    cause = signed_in.cause()
    try:
        account_pages.check_password(session.account, sent.current)
        passkeys.remove(session.account.id, sent.id, cause)
    except _REFUSED as error:
        return account_pages.account_page(session.account, error)
    return _renew_session(session, cause.now)


@blueprint.post("/sign-in/passkey/options")
@signed_in.open_to_all
def begin_sign_in() -> flask.Response:
    """Return the options for a sign-in with a passkey."""
    forms.read(parameters.NoForm)
    return _options(passkeys.begin_sign_in(_party(), signed_in.cause()))


@blueprint.post("/sign-in/passkey")
@signed_in.open_to_all
def sign_in() -> flask.Response:
    """Start a new session with a passkey, and end the browser's previous session."""
    sent, browser = forms.read(account_forms.SignedChallenge), signed_in.cookie()
    try:
        session = passkeys.sign_in(
            _token(), sent.answer, _party(), signed_in.cause(), browser=browser
        )
    except passkeys.WrongPasskey as error:
        return account_pages.sign_in_page(labels.problem(error), status=403)
    return signed_in.set_cookie(signed_in.redirect_to("admin"), session)


def _party() -> passkeys.RelyingParty:
    """Return the relying party of this service.

    Raises:
        passkeys.WrongPasskey: browsers offer no passkeys at the service's address.
    """
    party = passkeys.relying_party(context.service_url())
    if party is None:
        raise passkeys.WrongPasskey
    return party


def _token() -> str:
    return flask.request.cookies.get(COOKIE, "")


def _options(options: passkeys.Options) -> flask.Response:
    response = flask.Response(options.json, content_type="application/json")
    response.set_cookie(
        COOKIE, options.token, secure=True, httponly=True, samesite="Strict", path="/",
        max_age=int(passkeys.TERM.total_seconds()),
    )  # fmt: skip
    return response


def _problem(error: errors.FlatthreadError) -> flask.Response:
    """Return an error as JSON, which the script shows in the form."""
    body = msgspec.json.encode({"problem": labels.problem(error)})
    status = signed_in.status_of(error)
    return flask.Response(body, status=status, content_type="application/json")


def _renew_session(session: sessions.Session, now: datetime) -> flask.Response:
    """Begin a new session, because the change ended all of the account's sessions."""
    begun = sessions.begin(session.account.id, context.settings().secret, now=now)
    return signed_in.set_cookie(signed_in.redirect_to("admin/account#passkeys"), begun)
