"""The context of a request to a site's admin pages: the account, the site, and the page layout."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlencode

import flask

from comments import config, errors
from comments.accounts import accounts
from comments.domain import records
from comments.domain.moderation import roles
from comments.events import audit_log
from comments.moderation import review_queue
from comments.sites import site_settings
from comments.web.http import context
from comments.web.sign_in import signed_in

# The notices that any page can show at its top after a change (`redirect_with_notice`).
NOTICES = ("saved", "removed", "banned", "lifted", "restored", "undone", "edited", "replied")


class Visit(NamedTuple):
    """A request by an owner or moderator to an admin page of a site."""

    account: accounts.Account
    site: records.Site

    @property
    def is_owner(self) -> bool:
        """Whether the account may change the settings of the site."""
        return self.account.may(roles.Right.MANAGE, self.site.id)


def blueprint(name: str) -> flask.Blueprint:
    """Create a guarded blueprint for pages of a site."""
    made = flask.Blueprint(name, __name__, url_prefix="/admin/sites/<site:site_id>")
    signed_in.protect(made)
    return made


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
    return Visit(account, site_settings.get(site_id))


def show_again(blueprint: flask.Blueprint, view: Callable[..., flask.Response]) -> None:
    """Answer a refused form with its page, with the values that were sent and with the error."""

    def refuse(error: errors.BadInput | errors.Conflict | errors.MoveRefused) -> flask.Response:
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

    for kind in (errors.BadInput, errors.Conflict, errors.MoveRefused):
        blueprint.register_error_handler(kind, refuse)


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
    return audit_log.Noted(act, datetime.now(UTC))


def query(**values: str) -> str:
    """Return the query string for these values."""
    return urlencode(values)


def settings() -> config.Settings:
    """Return the settings of the application."""
    return context.settings()
