"""Who is signed in on our own pages, and that a change was wanted by him.

For every page under `/admin`, whoever writes it:

    blueprint = flask.Blueprint("queue", __name__, url_prefix="/admin")
    callers.guard(blueprint)

    @blueprint.get("/queue")
    def queue():
        account = callers.require(roles.Role.MODERATOR, site_id)   # 403, or the way to sign in
        return callers.page("admin/queue.html", rows=rows)

`signed_in()` is the account or None; `account.actor` says who did it in an audit entry. A page
extends `admin/base.html`; each of its forms has `{{ form_token() }}` inside. `guard` sees to the
headers, to errors as pages, and refuses every change that

- was not sent by a page of ours: `Sec-Fetch-Site: same-origin`, or, from a browser that does not
  say, our own `Origin`; without both it is refused;
- lacks the form's token, which is made of the session (`open_to_all` marks what is done by people
  who are not signed in, such as signing in: there the first rule alone holds).

The cookie is `__Host-flatthread`: no other host and no plain connection can set it, no script can
read it, and no other site's page sends it. It needs HTTPS, or a browser that takes loopback for
safe, as Chromium and Firefox do.

Nothing of a request is kept but in `flask.g`: threads share the rest.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar
from urllib.parse import urlsplit

import flask
import markupsafe
import msgspec

from comments import errors
from comments.accounts import accounts, sessions
from comments.domain import roles
from comments.domain.crypto import keyed_hashes
from comments.web.http import context, problems, response_shapes
from comments.web.http.decode import forms

COOKIE = "__Host-flatthread"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    # Not "no-referrer": with it browsers send no Origin with our own forms either.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Robots-Tag": "noindex",
    "Cache-Control": "no-store",
}
_READS = {"GET", "HEAD", "OPTIONS"}
_HTML = "text/html; charset=utf-8"

View = TypeVar("View", bound=Callable[..., object])


class NotSignedIn(errors.Forbidden):
    """This takes a session, and there is none that is good."""

    code = "not-signed-in"


def signed_in() -> accounts.Account | None:
    """Whose session the request is of; None for nobody's.

    Raises:
        errors.Overloaded: the store did not answer. Nobody is signed in then, and nobody is not.
    """
    session = _session()
    return None if session is None else session.account


def require(role: roles.Role, site: str) -> accounts.Account:
    """Who is signed in, who has this role on this site, or one that allows more.

    Raises:
        NotSignedIn: nobody is signed in.
        errors.Forbidden: he does not have it. Whether there is such a site is not said.
    """
    account = require_account()
    if not roles.has(account.grants, role, site):
        raise errors.Forbidden(f"this is for {role}s of {site[:100]}", code="not-allowed")
    return account


def require_account() -> accounts.Account:
    """Who is signed in.

    Raises:
        NotSignedIn: nobody is.
    """
    account = signed_in()
    if account is None:
        raise NotSignedIn("sign in first")
    return account


def cookie() -> str:
    """The token that the browser sent, good or not; empty for none."""
    return flask.request.cookies.get(COOKIE, "")


def give(response: flask.Response, session: sessions.Session) -> flask.Response:
    """Sign the browser in."""
    response.set_cookie(
        COOKIE, session.token, secure=True, httponly=True, samesite="Strict", path="/",
        max_age=int(sessions.LONGEST.total_seconds()),
    )  # fmt: skip
    return response


def take(response: flask.Response) -> flask.Response:
    """Take the browser's cookie away."""
    response.set_cookie(
        COOKIE, "", secure=True, httponly=True, samesite="Strict", path="/", max_age=0
    )
    return response


def open_to_all(view: View) -> View:
    """Mark a change as one that nobody has to be signed in for."""
    view.is_open_to_all = True  # type: ignore[attr-defined]
    return view


def guard(blueprint: flask.Blueprint) -> None:
    """Have a blueprint's pages answer as the module says."""
    blueprint.before_request(_admit)
    blueprint.after_request(_close)
    blueprint.register_error_handler(Exception, _refused)
    blueprint.context_processor(
        lambda: {"form_token": form_token, "account_of_session": signed_in, "root": root()}
    )


def page(template: str, *, status: int = 200, **values: object) -> flask.Response:
    """A page of ours."""
    made = flask.render_template(template, **values)
    return flask.Response(made, status=status, content_type=_HTML)


def go(where: str) -> flask.Response:
    """Have the browser open one of our pages, by its path without the leading "/"."""
    response = flask.redirect(f"{root()}{where}", 303)
    response.set_data(b"")
    return flask.make_response(response)


def status_of(error: Exception) -> int:
    """The HTTP status of an error, for a page that shows it itself."""
    return problems.status_of(error)


def root() -> str:
    """The way from the request's path to our root, which holds wherever a proxy has put us."""
    if not flask.has_request_context():
        return ""
    return "../" * (flask.request.path.count("/") - 1) or "./"


def form_token() -> markupsafe.Markup:
    """The hidden field of a form of whoever is signed in."""
    field = markupsafe.Markup('<input type="hidden" name="{}" value="{}">')
    return field.format(forms.TOKEN, _expected())


def _here() -> str:
    path, _, query = flask.request.full_path.partition("?")
    return f"./{path.rpartition('/')[2]}?{query}"


def _session() -> sessions.Session | None:
    if "session" not in flask.g:
        secret, now = context.settings().secret, datetime.now(UTC)
        flask.g.session = sessions.find(cookie(), secret, now=now)
    found: sessions.Session | None = flask.g.session
    return found


def _expected() -> str:
    session = _session()
    if session is None:
        return ""
    return keyed_hashes.text(keyed_hashes.keyed(context.settings().secret, "form", session.token))


def _admit() -> None:
    """Refuse a change that no page of ours asked for."""
    if flask.request.method in _READS:
        return
    if not _is_own_page():
        raise errors.Forbidden("this was not sent by a page of ours", code="cross-site")
    view = flask.current_app.view_functions[flask.request.endpoint or ""]
    if getattr(view, "is_open_to_all", False):
        return
    require_account()
    session, secret = _session(), context.settings().secret
    if session is None or not keyed_hashes.is_one(forms.token(), secret, "form", session.token):
        raise errors.Forbidden("the page was too old: open it again", code="stale-form")


def _is_own_page() -> bool:
    said = flask.request.headers.get("Sec-Fetch-Site")
    if said is not None:
        return said == "same-origin"
    origin = flask.request.headers.get("Origin", "")
    public = urlsplit(context.settings().public_url)
    # A proxy may end TLS before us, so that our own scheme is not ours to know.
    own = {f"https://{flask.request.host}", f"{flask.request.scheme}://{flask.request.host}"}
    return origin in own | ({f"{public.scheme}://{public.netloc}"} if public.netloc else set())


def _close(response: flask.Response) -> flask.Response:
    for name, value in _HEADERS.items():
        response.headers[name] = value
    response.vary.add("Cookie")
    return response


def _refused(error: Exception) -> flask.Response:
    """An error as a page; who is not signed in is shown the way."""
    if isinstance(error, NotSignedIn) and flask.request.method in _READS:
        # A link from elsewhere comes without the cookie (SameSite=Strict). Our own page asks again.
        if flask.request.headers.get("Sec-Fetch-Site") in {"cross-site", "same-site"}:
            return page("admin/again.html", here=_here())
        return go("admin/sign-in")
    told = problems.answer(error)
    problem = msgspec.json.decode(told.data, type=response_shapes.Problem)
    try:
        response = page("admin/problem.html", status=told.status_code, problem=problem)
    except errors.Overloaded:
        # The page asks who is signed in, and the store may be what is wrong.
        response = flask.Response(problem.detail, told.status_code, content_type="text/plain")
    for name, value in told.headers:
        if name.lower() not in {"content-type", "content-length", "www-authenticate"}:
            response.headers[name] = value
    return response
