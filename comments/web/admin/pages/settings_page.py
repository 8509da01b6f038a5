"""The settings of a site and of its moderation, for owners."""

import functools

import flask

from comments.accounts import moderation_sessions
from comments.domain import records, site_options
from comments.domain.moderation import roles
from comments.moderation.policy import policy_changes, rulebook
from comments.sites import site_aliases, site_settings, site_setup
from comments.transfer.moves import page_rules
from comments.transfer.uploads import site_copy
from comments.upkeep import worker_threads
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields, settings_forms, site_forms
from comments.web.sign_in import signed_in

blueprint = site_visit.owner_blueprint("settings")

_MOST_THREADS = 2_000  # Maximum number of threads of a site that a request moves


@blueprint.page("/settings")
def show(visit: site_visit.Visit, _query: object) -> flask.Response:
    """Show the forms."""
    return site_visit.page(
        "settings.html",
        visit,
        book=rulebook.from_store(visit.site.id),
        policies=list(records.Policy),
        wrong=site_setup.get(visit.site.id).wrong_of(visit.site, now=visit.now),
        no_origin=site_setup.NO_ORIGIN,
        longest_title=site_settings.LONGEST_TITLE,
        longest_cdn=site_settings.LONGEST_CDN,
        longest_freshness=site_settings.LONGEST_FRESHNESS,
        limits=site_options,
        may_copy=visit.account.may(roles.Right.MANAGE, roles.SERVICE),
    )


@blueprint.form("/settings/policy", settings_forms.PolicyForm)
def change_policy(visit: site_visit.Visit, sent: settings_forms.PolicyForm) -> flask.Response:
    """Change the moderation settings of the site."""
    policy_changes.set_policy(
        visit.site.id,
        visit.account.actor,
        now=visit.now,
        **sent.parse(
            policy=records.Policy, reports=functools.partial(form_fields.number, "reports")
        ),
        **sent.numbers("close_after", empty=0),
        reason=sent.reason,
    )
    return site_visit.redirect_with_notice(visit, "settings", "saved-moderation")


@blueprint.form("/settings", settings_forms.SiteForm)
def change(visit: site_visit.Visit, sent: settings_forms.SiteForm) -> flask.Response:
    """Change the settings of the site, with the same checks as on the command line.

    If pages get other ids, their threads move with them.
    """
    page_rules.change(
        visit.site.id,
        visit.account.actor,
        most=_MOST_THREADS,
        **sent.parse(
            title=str,
            origins=form_fields.several,
            query_keys=form_fields.several,
            cdn_seconds=functools.partial(form_fields.number, "cdn_seconds"),
            freshness=functools.partial(form_fields.number, "freshness"),
            moderators=form_fields.several,
        ),
        **sent.boxes("keep_trailing_slash", "ignore_www", "ignore_amp"),
        filed=sent.parse(categories=form_fields.phrases).get("categories"),
        noted=site_visit.audit_entry(visit, sent.reason),
    )
    return site_visit.redirect_with_notice(visit, "settings", "saved-site")


@blueprint.form("/settings/rename", site_forms.RenameForm)
def rename(visit: site_visit.Visit, sent: site_forms.RenameForm) -> flask.Response:
    """Give the site another short name; the earlier ones remain valid."""
    new = sent.short_name.strip()
    site_aliases.rename(visit.site.id, new, visit.account.actor, now=visit.now)
    return site_visit.redirect_with_notice(visit, "settings", "saved-name")


@blueprint.form("/settings/copy", site_forms.SiteCopyForm)
def copy(visit: site_visit.Visit, sent: site_forms.SiteCopyForm) -> flask.Response:
    """Make a staging copy of the site, and begin to copy its comments if the owner wants it."""
    signed_in.require(roles.Role.OWNER, roles.SERVICE)
    origins = form_fields.several(sent.origin)
    new, actor = sent.copy_name.strip(), visit.account.actor
    with_comments = bool(sent.comments)
    made = site_copy.copy(
        visit.site.id, new, origins, actor, now=visit.now, with_comments=with_comments
    )
    worker_threads.nudge_uploads()
    return signed_in.redirect_to(
        f"admin/sites/{made.id}/{'imports' if with_comments else 'settings'}"
    )


@blueprint.form("/settings/origin", site_forms.OriginForm)
def allow_origin(visit: site_visit.Visit, sent: site_forms.OriginForm) -> flask.Response:
    """Allow an origin from which pages have asked for the site's comments."""
    noted = site_visit.audit_entry(visit, "")
    site_settings.change(visit.site.id, added_origins=(sent.origin,), noted=noted)
    return site_visit.redirect_with_notice(visit, "settings", "saved-site")


@blueprint.form("/settings/options", settings_forms.OptionsForm)
def change_options(visit: site_visit.Visit, sent: settings_forms.OptionsForm) -> flask.Response:
    """Change the options that readers notice, with the same checks as on the command line.

    Turning off moderation in threads ends the sessions of moderators there.
    """
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


blueprint.show_again(show)
