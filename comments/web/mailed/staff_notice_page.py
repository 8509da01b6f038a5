"""The page with which staff unsubscribe from the mail about a site's comments.

The rules of `subscription_page` apply.
"""

import flask

from comments.notifications.staff import staff_links
from comments.web.http import context
from comments.web.mailed import mailed_links
from comments.web.rendering.page_text import text as t

blueprint = mailed_links.blueprint("notices", "/notices")


@blueprint.get("/unsubscribe")
def ask_to_unsubscribe() -> flask.Response:
    """Show a button that stops the mail."""
    link = _read(mailed_links.opened_link())
    button = mailed_links.Button(t("embed.unsubscribe-staff-button"), "notices/unsubscribe")
    question = t("embed.unsubscribe-staff-question", site=link.site)
    return mailed_links.page(t("embed.unsubscribe-title"), question, button, purpose="notices")


@blueprint.post("/unsubscribe")
def unsubscribe() -> flask.Response:
    """Stop the mail. Mail programs send this POST to the link itself (RFC 8058)."""
    is_one_click = bool(flask.request.query_string)
    link = mailed_links.opened_link() if is_one_click else mailed_links.posted_link("notices")
    staff_links.unsubscribe(_read(link), now=context.now())
    return mailed_links.page(t("embed.unsubscribed-title"), t("embed.unsubscribed-staff"))


def _read(link: str) -> staff_links.StaffLink:
    return staff_links.read(link, secret=context.settings().secret, now=context.now())
