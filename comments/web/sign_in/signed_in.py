"""Session authentication and CSRF checks for the admin pages.

Every page under `/admin` uses this module as follows:

    blueprint = flask.Blueprint("queue", __name__, url_prefix="/admin")
    signed_in.protect(blueprint)

    @blueprint.get("/queue")
    def queue():
        account = signed_in.require(roles.Role.MODERATOR, site_id)   # or 403, or the sign-in page
        return signed_in.page("admin/queue.html", rows=rows)

`signed_in()` returns the account or None. Audit entries contain `account.actor`. Each page extends
`admin/base.html` and contains `{{ form_token() }}` in each of its forms. `protect` sets the
security headers, shows errors as pages, and refuses a change in these cases:

- The change does not come from a page of this service. A change comes from such a page if the
  request has `Sec-Fetch-Site: same-origin` or, if the browser does not send this header, an
  `Origin` of this service.
- The change has no form token. The token is derived from the session and a salt, which is new for
  each page: pages are compressed and contain other people's texts, so the lengths of pages would
  reveal a constant token (BREACH). Views marked with `open_to_all`, such as the sign-in, work
  without a session, so they need no form token.

The cookie is `__Host-flatthread`, followed by the port if the address has an unusual one: browsers
share cookies between the ports of a host, where several services may run. Other hosts and
unencrypted connections cannot set this cookie, scripts cannot read it, and browsers do not send it
from pages of other sites. The cookie requires HTTPS, or a browser that trusts loopback addresses,
such as Chromium or Firefox.

Data about a request is stored only in `flask.g`, because everything else is shared between threads.
"""

import secrets
from collections.abc import Callable
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

import flask
import markupsafe

from comments import errors
from comments.accounts import accounts, security_log, sessions
from comments.domain.crypto import keyed_hashes
from comments.domain.languages import catalogue
from comments.domain.moderation import roles
from comments.sites import mail_server
from comments.web.http import content_coding, context, problems
from comments.web.http.decode import forms
from comments.web.rendering import labels
from comments.web.sign_in import first_owner_hint

COOKIE = "__Host-flatthread"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    # With "no-referrer", browsers would omit the Origin from forms of this service.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Robots-Tag": "noindex",
    "Cache-Control": "no-store",
}
_READS = {"GET", "HEAD", "OPTIONS"}
_SALT = 16  # Bytes of a form token's salt; the digest has the same length.
_HTML = "text/html; charset=utf-8"

View = TypeVar("View", bound=Callable[..., object])


class NotSignedIn(errors.Forbidden):
    """The request requires a valid session but has none."""

    code = "not-signed-in"


def current_account() -> accounts.Account | None:
    """Return the account to which the request's session belongs; None without a valid session.

    Raises:
        errors.Overloaded: the store did not answer, so it is unknown whether the session is valid.
    """
    session = _session()
    return None if session is None else session.account


def require(role: roles.Role, site: str) -> accounts.Account:
    """Return the signed-in account if it has this role or a higher role on this site.

    Raises:
        NotSignedIn: the request has no valid session.
        errors.Forbidden: the account lacks the role. The error does not say whether the site
            exists.
    """
    account = require_account()
    if not roles.has(account.grants, role, site):
        if site == roles.SERVICE:
            raise errors.Forbidden("not-allowed-on-service", role=role)
        raise errors.Forbidden("not-allowed", role=role, site=site[:100])
    return account


def require_account() -> accounts.Account:
    """Return the signed-in account.

    Raises:
        NotSignedIn: the request has no valid session.
    """
    return require_session().account


def require_session() -> sessions.Session:
    """Return the request's session.

    Raises:
        NotSignedIn: the request has no valid session.
    """
    session = _session()
    if session is None:
        raise NotSignedIn
    return session


def cause(by: str = "") -> security_log.Cause:
    """Return the current request as the cause of entries in security logs.

    `by` is the id of the account that acts, or "" for the owner of the account that is changed.
    """
    settings, languages = context.settings(), flask.request.accept_languages
    return security_log.Cause(
        by=by,
        network=context.network(),
        secret=settings.secret,
        now=context.now(),
        language=languages.best_match(catalogue.languages()) or catalogue.ENGLISH.language,
        sends_mail=mail_server.sends_mail(settings),
    )


def use(session: sessions.Session) -> None:
    """Use a session that has just begun for the rest of this request, such as its forms."""
    flask.g.session = session


def cookie_name(name: str) -> str:
    """Return the name of a cookie at the address of the current request."""
    _, colon, port = flask.request.host.rpartition(":")
    return f"{name}-{port}" if colon and port.isdecimal() else name


def cookie() -> str:
    """Return the session token that the browser sent, which may be invalid, or ""."""
    return flask.request.cookies.get(cookie_name(COOKIE), "")


def set_cookie(response: flask.Response, session: sessions.Session) -> flask.Response:
    """Set the session cookie on a response."""
    response.set_cookie(
        cookie_name(COOKIE), session.token, secure=True, httponly=True, samesite="Strict", path="/",
        max_age=int(sessions.LONGEST.total_seconds()),
    )  # fmt: skip
    return response


def delete_cookie(response: flask.Response) -> flask.Response:
    """Make a response delete the session cookie."""
    response.set_cookie(
        cookie_name(COOKIE), "", secure=True, httponly=True, samesite="Strict", path="/", max_age=0
    )
    return response


def open_to_all(view: View) -> View:
    """Mark a view whose changes require no session."""
    view.is_open_to_all = True  # type: ignore[attr-defined]
    return view


def protect(blueprint: flask.Blueprint) -> None:
    """Add the checks, headers, error pages and template functions to the pages of a blueprint."""
    blueprint.before_request(_admit)
    blueprint.after_request(_close)
    blueprint.register_error_handler(Exception, refuse)
    blueprint.context_processor(_template_values)


def page(template: str, *, status: int = 200, **values: object) -> flask.Response:
    """Render a page, after a refused form with the error and the values that were sent."""
    refused = flask.g.get("refused")
    kept = forms.fields() if refused and flask.request.method == "POST" else {}
    made = flask.render_template(template, **{"refused": refused, "kept": kept} | values)
    coding = content_coding.preferred_coding(flask.request.accept_encodings)
    data = content_coding.encode(made.encode(), coding)
    response = flask.Response(data, status=status, content_type=_HTML)
    if coding is not content_coding.Coding.IDENTITY:
        response.headers["Content-Encoding"] = coding.value
    return response


class Refusal(NamedTuple):
    """Why a form was refused: the field, or "" for an error of the whole form, and the sentence."""

    field: str
    said: str


def refuse_form(error: errors.FlatthreadError) -> int:
    """Let the page that answers a form show why the form was refused, and return its status."""
    flask.g.refused = Refusal(getattr(error, "field", ""), labels.problem(error))
    return status_of(error)


def redirect_to(where: str) -> flask.Response:
    """Redirect (303) to a page of this service.

    `where` is the page's path without the leading "/".
    """
    response = flask.redirect(f"{root()}{where}", 303)
    response.set_data(b"")
    return flask.make_response(response)


def status_of(error: Exception) -> int:
    """Return the HTTP status for an error, for a page that shows the error message itself."""
    return problems.status_of(error)


def root() -> str:
    """Return the relative path from the request's path to the root of this service.

    The path is relative because a proxy may serve this service under any path.
    """
    if not flask.has_request_context():
        return ""
    return "../" * (flask.request.path.count("/") - 1) or "./"


def form_token() -> markupsafe.Markup:
    """Return the hidden field with a form token of the current session."""
    field, session = markupsafe.Markup('<input type="hidden" name="{}" value="{}">'), _session()
    if session is None:
        return field.format(forms.TOKEN, "")
    salt = flask.g.setdefault("form_salt", keyed_hashes.text(secrets.token_bytes(_SALT)))
    digest = keyed_hashes.keyed_digest(context.settings().secret, "form", session.token, salt)
    return field.format(forms.TOKEN, salt + keyed_hashes.text(digest))


def _template_values() -> dict[str, object]:
    return {
        "form_token": form_token,
        "account_of_session": current_account,
        "is_service_owner": _is_service_owner,
        "root": root(),
        "language": catalogue.ENGLISH.language,
        "applies": labels.applies,
        "label": labels.label,
        "moment": labels.moment,
        "day": labels.day,
        "choices": labels.choices,
        "number": labels.number,
        "time_left": labels.time_left,
        "script_texts": labels.of_scripts,
        "first_owner_hint": first_owner_hint.hint,
    }


def _is_service_owner() -> bool:
    """Return whether the signed-in account may see pages about the service."""
    account = current_account()
    return account is not None and account.may(roles.Right.MANAGE, roles.SERVICE)


def _here() -> str:
    path, _, query = flask.request.full_path.partition("?")
    return f"./{path.rpartition('/')[2]}?{query}"


def _session() -> sessions.Session | None:
    if "session" not in flask.g:
        secret, now = context.settings().secret, context.now()
        flask.g.session = sessions.find(cookie(), secret, now=now)
    session: sessions.Session | None = flask.g.session
    return session


def _admit() -> None:
    """Refuse a change that does not come from a page of this service."""
    if flask.request.method in _READS:
        return
    if not _is_own_page():
        raise errors.Forbidden("cross-site")
    view = flask.current_app.view_functions[flask.request.endpoint or ""]
    if getattr(view, "is_open_to_all", False):
        return
    session, secret, token = require_session(), context.settings().secret, forms.token()
    salt, digest = token[: len(token) // 2], token[len(token) // 2 :]
    if not keyed_hashes.is_one(digest, secret, "form", session.token, salt):
        raise errors.Forbidden("stale-form")


def _is_own_page() -> bool:
    fetch_site = flask.request.headers.get("Sec-Fetch-Site")
    if fetch_site is not None:
        return fetch_site == "same-origin"
    origin = flask.request.headers.get("Origin", "")
    public = urlsplit(context.settings().public_url)
    # A proxy may terminate TLS, so the scheme of the request may differ from the public scheme.
    own = {f"https://{flask.request.host}", f"{flask.request.scheme}://{flask.request.host}"}
    return origin in own | ({f"{public.scheme}://{public.netloc}"} if public.netloc else set())


def _close(response: flask.Response) -> flask.Response:
    for name, value in _HEADERS.items():
        response.headers[name] = value
    response.vary.update(("Accept-Encoding", "Cookie"))
    return response


def refuse(error: Exception) -> flask.Response:
    """Show an error as a page, or the sign-in page if the request requires a session."""
    if isinstance(error, NotSignedIn) and flask.request.method in _READS:
        # Browsers do not send SameSite=Strict cookies when they follow a link from another site.
        # The response is a page that reloads itself, and the reload sends the cookie.
        if flask.request.headers.get("Sec-Fetch-Site") in {"cross-site", "same-site"}:
            return page("admin/again.html", here=_here())
        return redirect_to("admin/sign-in#ended" if cookie() else "admin/sign-in")
    return problems.page(error, _problem)


def _problem(problem: problems.Problem) -> flask.Response:
    try:
        text = labels.sentence(problem.detail, problem.field)
        return page("admin/problem.html", problem=problem, said=text)
    except errors.Overloaded:
        # Rendering a page looks up the session, which fails again while the store does not answer.
        return flask.Response(problem.detail, content_type="text/plain")
