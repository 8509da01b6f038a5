"""The context of a request to a site's admin pages: the account, the site, and the page layout."""

import functools
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Concatenate, Generic, NamedTuple, TypeVar
from urllib.parse import urlencode

import flask
import msgspec

from comments import config, errors
from comments.accounts import accounts
from comments.domain import records
from comments.domain.moderation import roles
from comments.events import audit_log
from comments.moderation import review_queue
from comments.sites import site_settings
from comments.web.admin.form_types import form_fields
from comments.web.http import context
from comments.web.http.decode import forms, parameters, query_strings
from comments.web.sign_in import signed_in

T = TypeVar("T", bound=msgspec.Struct)
V = TypeVar("V")
View = Callable[..., flask.Response]
_OF_SITE = "sites/<site:site_id>"

# The notices that any page can show at its top after a change (`redirect_with_notice`).
NOTICES = (
    "saved", "removed", "banned", "lifted", "restored", "undone", "edited", "replied",
    "linked", "unlinked", "allowed",
)  # fmt: skip


class Visit(NamedTuple):
    """A request by an owner or moderator to an admin page of a site."""

    account: accounts.Account
    site: records.Site
    now: datetime

    @property
    def is_owner(self) -> bool:
        """Whether the account may change the settings of the site."""
        return self.account.may(roles.Right.MANAGE, self.site.id)


def blueprint(name: str) -> "Pages[Visit]":
    """Create the pages of a site for its moderators."""
    return Pages(name, _OF_SITE, enter)


def owner_blueprint(name: str) -> "Pages[Visit]":
    """Create the pages of a site for its owners."""
    return Pages(name, _OF_SITE, functools.partial(enter, role=roles.Role.OWNER))


def service_blueprint(name: str, path: str) -> "Pages[accounts.Account]":
    """Create pages for the owners of the service."""
    return Pages(name, path, lambda: signed_in.require(roles.Role.OWNER, roles.SERVICE))


class Pages(flask.Blueprint, Generic[V]):
    """Guarded pages of the console.

    `enter` gets the site in the path, if there is one, and refuses accounts that may not see the
    pages. Each view gets the value that `enter` returns, the decoded query or form, and the rest of
    the path.
    """

    def __init__(self, name: str, path: str, enter: Callable[..., V]) -> None:
        super().__init__(name, __name__, url_prefix=f"/admin/{path}")
        self._enter = enter
        signed_in.protect(self)

    def page(
        self,
        rule: str,
        query: type[T] = form_fields.EmptyQuery,  # type: ignore[assignment]
        *,
        methods: Sequence[str] = ("GET",),
    ) -> Callable[[Callable[Concatenate[V, T, ...], flask.Response]], View]:
        """Register a view that shows a page."""
        return self._register(rule, methods, functools.partial(query_strings.read, query))

    def form(
        self,
        rule: str,
        form: type[T] = parameters.NoForm,  # type: ignore[assignment]
    ) -> Callable[[Callable[Concatenate[V, T, ...], flask.Response]], View]:
        """Register a view that carries out a form."""
        return self._register(rule, ("POST",), functools.partial(forms.read, form))

    def _register(
        self, rule: str, methods: Sequence[str], read: Callable[[], T]
    ) -> Callable[[Callable[Concatenate[V, T, ...], flask.Response]], View]:
        def register(view: Callable[Concatenate[V, T, ...], flask.Response]) -> View:
            @functools.wraps(view)
            def run(**path: str) -> flask.Response:
                site = {name: path.pop(name) for name in ("site_id",) if name in path}
                return view(self._enter(**site), read(), **path)

            self.add_url_rule(rule, view_func=run, methods=methods)
            return run

        return register

    def show_again(self, view: View, *kinds: type[errors.CodedError]) -> None:
        """Answer a refused form with its page, with the values that were sent and with the error.

        `kinds` are errors that the page shows besides the usual ones.
        """

        def refuse(error: errors.CodedError) -> flask.Response:
            is_script = flask.request.accept_mimetypes.best == "application/json"
            if flask.request.method != "POST" or is_script or "refused" in flask.g:
                return signed_in.refuse(error)
            status = signed_in.refuse_form(error)
            try:
                response = view(**(flask.request.view_args or {}))
            except errors.CodedError:  # What the form is about is missing or not named.
                return signed_in.refuse(error)
            response.status_code = status
            return response

        for kind in (errors.BadInput, errors.Conflict, errors.MoveRefused, *kinds):
            self.register_error_handler(kind, refuse)


def enter(site_id: str, role: roles.Role = roles.Role.MODERATOR) -> Visit:
    """Return the signed-in account and the site.

    Raises:
        signed_in.NotSignedIn: the request has no valid session.
        errors.NotFound: the site does not exist, or the account has no role on it.
        errors.Forbidden: the account needs a higher role on the site.
    """
    account = signed_in.require_account()
    if not roles.has(account.grants, roles.Role.MODERATOR, site_id):
        raise errors.NotFound("site", site_id)
    signed_in.require(role, site_id)
    return Visit(account, site_settings.get(site_id), datetime.now(UTC))


def page(template: str, visit: Visit, **values: object) -> flask.Response:
    """Render a page of a site."""
    console_url = f"{signed_in.root()}admin/sites/{visit.site.id}"
    grants = visit.account.grants
    return signed_in.page(
        f"admin/{template}",
        status=200,
        visit=visit,
        site=visit.site,
        desk=console_url,
        sites=[
            name for name in site_settings.names() if roles.has(grants, roles.Role.MODERATOR, name)
        ],
        pending=review_queue.count_pending(visit.site.id),
        notices=NOTICES,
        # The parameters of the next page of a list, without the cursor.
        again={name: value for name, value in flask.request.args.items() if name != "cursor"},
        **values,
    )


def redirect_with_notice(visit: Visit, where: str, said: str) -> flask.Response:
    """Redirect to a page of the site that shows the notice `said`.

    The notice is one of `NOTICES`, or a notice that the page shows next to a form. The fragment of
    the address names the notice, so later requests do not contain it.
    """
    return signed_in.redirect_to(f"admin/sites/{visit.site.id}/{where}#{said}")


def audit_entry(visit: Visit, reason: str, verb: str = "set-site") -> audit_log.Noted:
    """Return the audit log entry for a change of the site's settings."""
    act = audit_log.Act(visit.account.actor, verb, reason)
    return audit_log.Noted(act, visit.now)


def service_audit_entry(verb: str) -> audit_log.Noted:
    """Return the audit log entry for a change of the service (`roles.SERVICE`)."""
    act = audit_log.Act(signed_in.require_account().actor, verb)
    return audit_log.Noted(act, datetime.now(UTC))


def query(**values: str) -> str:
    """Return the query string for these values."""
    return urlencode(values)


def settings() -> config.Settings:
    """Return the settings of the application."""
    return context.settings()
