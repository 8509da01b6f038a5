"""The settings of a site and of its moderation, for owners."""

import functools
from datetime import UTC, datetime

import flask

from comments.accounts import moderation_sessions
from comments.domain import records, site_options
from comments.domain.moderation import roles
from comments.moderation.policy import policy_changes, rulebook
from comments.sites import site_aliases, site_settings, site_setup
from comments.transfer.uploads import site_copy
from comments.upkeep import worker_threads
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields, settings_forms, site_forms
from comments.web.http.decode import forms, query_strings
from comments.web.sign_in import signed_in

blueprint = site_visit.blueprint("settings")


@blueprint.get("/settings")
def show(site_id: str) -> flask.Response:
    """Show the forms."""
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    query_strings.read(form_fields.EmptyQuery)
    return site_visit.page(
        "settings.html",
        visit,
        book=rulebook.from_store(visit.site.id),
        policies=list(records.Policy),
        wrong=site_setup.get(visit.site.id).wrong_of(visit.site, now=datetime.now(UTC)),
        no_origin=site_setup.NO_ORIGIN,
        longest_title=site_settings.LONGEST_TITLE,
        longest_cdn=site_settings.LONGEST_CDN,
        longest_freshness=site_settings.LONGEST_FRESHNESS,
        limits=site_options,
        may_copy=visit.account.may(roles.Right.MANAGE, roles.SERVICE),
    )


@blueprint.post("/settings/policy")
def change_policy(site_id: str) -> flask.Response:
    """Change the moderation settings of the site."""
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    sent = forms.read(settings_forms.PolicyForm)
    policy_changes.set_policy(
        visit.site.id,
        visit.account.actor,
        now=datetime.now(UTC),
        **sent.parse(
            policy=records.Policy, reports=functools.partial(form_fields.number, "reports")
        ),
        **sent.numbers("close_after", empty=0),
        reason=sent.reason,
    )
    return site_visit.redirect_with_notice(visit, "settings", "saved-moderation")


@blueprint.post("/settings")
def change(site_id: str) -> flask.Response:
    """Change the settings of the site, with the same checks as on the command line.

    Turning off moderation in threads ends the sessions of moderators there.
    """
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    sent = forms.read(settings_forms.SiteForm)
    site_settings.change(
        visit.site.id,
        **sent.parse(
            title=str,
            origins=form_fields.several,
            query_keys=form_fields.several,
            cdn_seconds=functools.partial(form_fields.number, "cdn_seconds"),
            freshness=functools.partial(form_fields.number, "freshness"),
            moderators=form_fields.several,
        ),
        **sent.boxes("keep_trailing_slash"),
        filed=sent.parse(categories=form_fields.phrases).get("categories"),
        noted=site_visit.audit_entry(visit, sent.reason),
    )
    return site_visit.redirect_with_notice(visit, "settings", "saved-site")


@blueprint.post("/settings/rename")
def rename(site_id: str) -> flask.Response:
    """Give the site another short name; the earlier ones remain valid."""
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    sent = forms.read(site_forms.RenameForm)
    new, now = sent.short_name.strip(), datetime.now(UTC)
    site_aliases.rename(visit.site.id, new, visit.account.actor, now=now)
    return site_visit.redirect_with_notice(visit, "settings", "saved-name")


@blueprint.post("/settings/copy")
def copy(site_id: str) -> flask.Response:
    """Make a staging copy of the site, and begin to copy its comments if the owner wants it."""
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    signed_in.require(roles.Role.OWNER, roles.SERVICE)
    sent, now = forms.read(site_forms.SiteCopyForm), datetime.now(UTC)
    origins = form_fields.several(sent.origin)
    new, actor = sent.copy_name.strip(), visit.account.actor
    with_comments = bool(sent.comments)
    made = site_copy.copy(visit.site.id, new, origins, actor, now=now, with_comments=with_comments)
    worker_threads.nudge_uploads()
    return signed_in.redirect_to(
        f"admin/sites/{made.id}/{'imports' if with_comments else 'settings'}"
    )


@blueprint.post("/settings/origin")
def allow_origin(site_id: str) -> flask.Response:
    """Allow an origin from which pages have asked for the site's comments."""
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    sent = forms.read(site_forms.OriginForm)
    noted = site_visit.audit_entry(visit, "")
    site_settings.change(visit.site.id, added_origins=(sent.origin,), noted=noted)
    return site_visit.redirect_with_notice(visit, "settings", "saved-site")


@blueprint.post("/settings/options")
def change_options(site_id: str) -> flask.Response:
    """Change the options that readers notice, with the same checks as on the command line."""
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    sent = forms.read(settings_forms.OptionsForm)
    given = {
        **sent.boxes("votes", "website", "guests", "moderation", "forms"),
        **sent.parse(order=str, theme=str, language=str, images=form_fields.several),
        **sent.numbers("live", empty=0),
    }
    site_settings.change(
        visit.site.id, options=given, noted=site_visit.audit_entry(visit, sent.reason)
    )
    if not given.get("moderation", True):
        moderation_sessions.end_all(visit.site.id)
    return site_visit.redirect_with_notice(visit, "settings", "saved-options")


site_visit.show_again(blueprint, show)
