"""The home page of the admin console: the account's sites, and a form to add a website.

For each site, the page shows what needs a decision and how many comments are new since the
account's last visit. Owners of the
service see how many problems its checks find, without those that need the network.

The form first asks for the address. Then it shows the origin and the id that it derives from the
address; both can be changed. Until the setup of a site is finished, the page links to its next
step.
"""

from collections import Counter
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlsplit

import flask
import msgspec

from comments import errors
from comments.accounts import accounts, sessions
from comments.domain import records
from comments.domain.ids import site_ids
from comments.domain.moderation import roles
from comments.domain.text.addresses import web_origins
from comments.moderation import reports, review_queue
from comments.sites import site_deletion, site_settings, site_setup
from comments.upkeep import service_checks
from comments.web.admin.form_types import form_fields, site_forms
from comments.web.http import context
from comments.web.http.decode import forms
from comments.web.rendering import labels
from comments.web.sign_in import signed_in

blueprint = flask.Blueprint("home", __name__, url_prefix="/admin")
signed_in.protect(blueprint)


_NEW = timedelta(days=7)  # For accounts whose last visit is not known
_SHOWN = (records.Status.APPROVED, records.Status.PENDING)


class _SiteRole(NamedTuple):
    """A site and the account's role on it.

    `new` is the number of new comments, without refused ones, up to `MOST_COUNTED` of each status.
    """

    site: records.Site
    role: roles.Role
    pending: int
    reported: int
    new: int


@blueprint.get("")
def show() -> flask.Response:
    """Show the account and its sites."""
    return _page(signed_in.require_account())


@blueprint.post("/sites")
def add() -> flask.Response:
    """Propose an id for a website, or add the website and redirect to the page with its snippet."""
    account = signed_in.require(roles.Role.OWNER, roles.SERVICE)
    sent = forms.read(site_forms.NewSiteForm)
    scheme, now = context.settings().scheme, context.now()
    try:
        origins = _origins(sent)
        proposed, is_kept = _proposed_id(origins[0]), sent.short_name == sent.proposed
        # Ids are permanent, so an id that was proposed for another address is replaced.
        if not sent.short_name.strip() or (is_kept and proposed != sent.proposed):
            sent = msgspec.structs.replace(sent, short_name=proposed, proposed=proposed)
            return _page(account, sent, origins)
        added = site_settings.add(
            _checked_name(sent), origins, scheme=scheme, now=now, ignore_www=True
        )
    except (errors.BadInput, errors.Conflict) as error:
        return _page(account, sent, error=error)
    site_setup.begin(added.id)
    return signed_in.redirect_to(f"admin/sites/{added.id}/start")


@blueprint.get("/")
@blueprint.get("/sites")
@blueprint.get("/sites/")
def find_home() -> flask.Response:
    """Redirect manually typed addresses to the home page."""
    return signed_in.redirect_to("admin")


def _checked_name(sent: site_forms.NewSiteForm) -> str:
    try:
        return site_ids.check(sent.short_name.strip())
    except errors.BadInput as error:
        raise error.about("short_name") from error


def _origins(sent: site_forms.NewSiteForm) -> tuple[str, ...]:
    origins = map(web_origins.of_address, form_fields.several(sent.origin))
    if not (distinct := tuple(dict.fromkeys(origins))):
        raise errors.BadInput("origin", "required")
    return distinct


def _proposed_id(origin: str) -> str:
    taken = {site.id for site in site_settings.every_kept()}
    return site_ids.guess(urlsplit(origin).hostname or "", taken)


def _page(
    account: accounts.Account,
    sent: site_forms.NewSiteForm | None = None,
    origins: tuple[str, ...] = (),
    *,
    error: errors.FlatthreadError | None = None,
) -> flask.Response:
    """Show the page; after a form, with the values sent, the origins or the problem."""
    now, settings = context.now(), context.settings()
    visited = sessions.note_visit(account.id, now=now)
    since = visited or now - _NEW
    held, is_owner = _held_sites(account, since), account.may(roles.Right.MANAGE, roles.SERVICE)
    owned = {entry.site.id: entry.site for entry in held if entry.role is roles.Role.OWNER}
    setups = site_setup.of(list(owned))
    findings = (
        (
            *service_checks.machine_findings(settings),
            *service_checks.store_findings(settings, now, connects=False),
        )
        if is_owner
        else ()
    )
    deleted = [
        (site, None if site.erasing else site_deletion.ends(site))
        for site in site_deletion.deleted_sites()
        if account.may(roles.Right.MANAGE, site.id)
    ]
    return signed_in.page(
        "admin/home.html",
        status=200 if error is None else signed_in.status_of(error),
        account=account,
        held=held,
        is_owner=is_owner,
        # A new service contains only the site of its demo page.
        is_new=is_owner and not deleted and set(owned) <= {site_settings.DEMO},
        example=next((name for name, site in owned.items() if _is_example(site)), ""),
        levels=Counter(finding.level for finding in findings),
        since=since.date().isoformat(),
        visited=visited,
        wrong=[
            (name, visit.origin)
            for name, setup in setups.items()
            for visit in setup.wrong_of(owned[name], now=now)
            if setup.is_done
        ],
        deleted=deleted,
        unfinished=[name for name, setup in setups.items() if not setup.is_done],
        sent=sent,
        origins=origins,
        problem="" if error is None else labels.problem(error),
        field=getattr(error, "field", ""),
    )


def _is_example(site: records.Site) -> bool:
    return site.id == site_settings.DEMO and not site.origins


def _held_sites(account: accounts.Account, since: datetime) -> list[_SiteRole]:
    """Return the sites on which an account has a role, first those that need a decision.

    A role on the whole service applies to every site.
    """
    by_site = {}
    for site in site_settings.every():
        for role in (roles.Role.OWNER, roles.Role.MODERATOR):
            if site.id not in by_site and roles.has(account.grants, role, site.id):
                new = review_queue.QueueFilter(site.id, _SHOWN, since=since)
                by_site[site.id] = _SiteRole(
                    site,
                    role,
                    pending=review_queue.count_pending(site.id),
                    reported=reports.count_open(site.id, review_queue.MOST_COUNTED),
                    new=review_queue.count(new, review_queue.MOST_COUNTED),
                )
    return sorted(by_site.values(), key=lambda entry: not (entry.pending or entry.reported))
