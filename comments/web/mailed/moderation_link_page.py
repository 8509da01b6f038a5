"""The page to which the mail about a held comment links: the comment and three buttons.

If the comment has changed since the mail was sent, a button has no effect. The rules of
`mailed_links` apply as well.
"""

import functools

import flask

from comments.domain import records
from comments.notifications import moderation_links
from comments.web.http import context
from comments.web.mailed import mailed_links
from comments.web.rendering.page_text import text as t

blueprint = mailed_links.blueprint("decisions", "/decisions")


@blueprint.get("")
def look() -> flask.Response:
    """Show the comment and the buttons."""
    link = _read_link(mailed_links.opened_link())
    case = moderation_links.case(link)
    if not moderation_links.is_current(link, case):
        return mailed_links.page(t("embed.decide-changed-title"), t("embed.decide-changed"))
    reason = t("embed.decide-held", reason=case.why) if case.why else ""
    heading = t("embed.decide-title", site=link.site)
    buttons = [
        mailed_links.Button(t(f"embed.decide-button-{verb}"), f"decisions/{verb}")
        for verb in moderation_links.VERBS
    ]
    return mailed_links.page(heading, reason, *buttons, purpose="decide", comment=case.comment)


def decide(verb: records.Verb) -> flask.Response:
    """Publish or reject the comment."""
    moderation_links.act(_read_link(mailed_links.posted_link("decide")), verb, now=context.now())
    return mailed_links.page(t("embed.decided-title"), t(f"embed.decided-{verb}"))


for _verb in moderation_links.VERBS:
    blueprint.post(f"/{_verb}", endpoint=_verb.value)(functools.partial(decide, _verb))


def _read_link(link: str) -> moderation_links.ModerationLink:
    return moderation_links.read(link, secret=context.settings().secret, now=context.now())
