"""A visit to the admin console of a site: who is there, and the frame around each of its pages."""

from typing import NamedTuple
from urllib.parse import urlencode

import flask

from comments import config, errors
from comments.accounts import accounts
from comments.domain import records, roles
from comments.sites import site_settings
from comments.web.admin import signed_in
from comments.web.http import context

# What a page says that was done on the way to it (`done`), by name.
NOTICES = {
    "saved": "Saved. It holds everywhere within a minute.",
    "removed": "Removed. What the rule held stays as it is.",
    "banned": "The author is banned, everywhere within a minute.",
    "lifted": "The ban is lifted.",
    "restored": "What was hidden of the author is shown again.",
    "undone": "It was taken back.",
}


class Visit(NamedTuple):
    """Somebody who looks after a site."""

    account: accounts.Account
    site: records.Site

    @property
    def is_owner(self) -> bool:
        """Whether he may settle what the site is."""
        return self.account.may(roles.Right.MANAGE, self.site.id)

    @property
    def runs_the_service(self) -> bool:
        """Whether he may look after what is not about a site."""
        return self.account.may(roles.Right.MANAGE, roles.SERVICE)


def blueprint(name: str) -> flask.Blueprint:
    """A blueprint for pages of a site, guarded."""
    made = flask.Blueprint(name, __name__, url_prefix="/admin/sites/<site:site_id>")
    signed_in.guard(made)
    return made


def enter(site_id: str, role: roles.Role = roles.Role.MODERATOR) -> Visit:
    """Who is signed in, at the desk of this site.

    Raises:
        callers.NotSignedIn: nobody is.
        errors.NotFound: he has nothing to do with the site, or there is none.
        errors.Forbidden: what he is on the site does not allow this.
    """
    account = signed_in.require_account()
    if not roles.has(account.grants, roles.Role.MODERATOR, site_id):
        raise errors.NotFound("site", site_id)
    signed_in.require(role, site_id)
    return Visit(account, site_settings.get(site_id))


def page(template: str, visit: Visit, **values: object) -> flask.Response:
    """A page of the desk."""
    desk = f"{signed_in.root()}admin/sites/{visit.site.id}"
    return signed_in.page(
        f"admin/{template}",
        status=200,
        visit=visit,
        site=visit.site,
        desk=desk,
        notices=NOTICES,
        # Where the next page of a listing is: the same question, but for the place.
        again={name: value for name, value in flask.request.args.items() if name != "cursor"},
        **values,
    )


def done(visit: Visit, where: str, said: str) -> flask.Response:
    """Have the browser open a page of the desk, which says what was done: `said` names a notice.

    That stands behind the "#", so it is shown once, and no request repeats it.
    """
    return signed_in.go(f"admin/sites/{visit.site.id}/{where}#{said}")


def query(**values: str) -> str:
    """A query of one of our pages."""
    return urlencode(values)


def settings() -> config.Settings:
    """The settings of the application."""
    return context.settings()
