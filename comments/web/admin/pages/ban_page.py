"""The forms on an author's page that ban the author, or link the author with others."""

import functools
from collections.abc import Callable
from datetime import timedelta

import flask

from comments.domain.records import Verb
from comments.moderation import bans, decisions
from comments.moderation.policy import author_links, policy_changes
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields, people_forms
from comments.web.admin.pages import author_pages
from comments.web.http.decode import query_strings

blueprint = site_visit.blueprint("bans")

_SAID = {
    "ban": "banned", "unban": "lifted", "restore": "restored",
    "link": "linked", "unlink": "unlinked", "allow": "allowed",
}  # fmt: skip
_ROUNDS = 10  # Each round processes 100 comments; for more, the moderator submits the form again.


@blueprint.form("/bans", people_forms.BanForm)
def settle(visit: site_visit.Visit, sent: people_forms.BanForm) -> flask.Response:
    """Ban an author or lift the ban. On request, hide or restore the author's comments."""
    author = query_strings.read(people_forms.AuthorQuery).id
    site, actor = visit.site.id, visit.account.actor
    if sent.act == "ban":
        days = form_fields.number("days", sent.days) if sent.days else 0
        network = (
            form_fields.number("network_days", sent.network_days) if sent.network_days else None
        )
        bans.ban(
            site, author, bans.BanScope(network, bool(sent.mailbox)), actor,
            secret=site_visit.settings().secret, now=visit.now, is_shadow=bool(sent.shadow),
            until=visit.now + timedelta(days=days) if sent.days else None, reason=sent.reason,
        )  # fmt: skip
        verb = Verb.HIDE
    else:
        if sent.act == "unban":
            policy_changes.unban(site, author, actor, now=visit.now, reason=sent.reason)
        verb = Verb.RESTORE
    if sent.hide or sent.act == "restore":
        decide = functools.partial(decisions.decide_all, site, author, verb, actor, now=visit.now)
        _run_rounds(functools.partial(decide, reason=sent.reason))
    return site_visit.redirect_with_notice(
        visit, f"author?{site_visit.query(id=author)}", _SAID[sent.act]
    )


@blueprint.form("/author/links", people_forms.AuthorLinkForm)
def change_links(visit: site_visit.Visit, sent: people_forms.AuthorLinkForm) -> flask.Response:
    """Link an author with another one, end such a link, or allow claims of an imported author."""
    author = query_strings.read(people_forms.AuthorQuery).id
    site, actor = visit.site.id, visit.account.actor
    if sent.act == "allow":
        author_links.allow_claims(site, author, actor, now=visit.now, reason=sent.reason)
    else:
        change = author_links.link if sent.act == "link" else author_links.unlink
        other = decisions.author_id(site, sent.other)
        change(site, author, other, actor, now=visit.now, reason=sent.reason)
    return site_visit.redirect_with_notice(
        visit, f"author?{site_visit.query(id=author)}", _SAID[sent.act]
    )


blueprint.show_again(author_pages.show)


def _run_rounds(step: Callable[[], list[decisions.DecisionResult]]) -> None:
    for _ in range(_ROUNDS):
        outcomes = step()
        if len(outcomes) < decisions.MOST_AT_ONCE or all(outcome.code for outcome in outcomes):
            return
