"""The pages to which subscription mail links: confirm and unsubscribe.

The rules of `mailed_links` apply, with one exception: the one-click unsubscribe request (RFC 8058)
needs no form token, because mail programs POST it to the link itself.
"""

from collections.abc import Callable
from typing import Any, Literal

import flask

from comments.notifications import double_opt_in, form_tokens
from comments.sites import site_settings
from comments.web.http import context
from comments.web.http.decode import forms, parameters, query_strings
from comments.web.mailed import mailed_links
from comments.web.mailed.mailed_links import Button
from comments.web.rendering.page_text import text as t

blueprint = mailed_links.blueprint("subscriptions", "/subscriptions")


class ConfirmationForm(mailed_links.LinkForm, frozen=True):
    """The values of `LinkForm`, and whether the site's owner may see the address (a checkbox)."""

    share: Literal["", "on"] = ""


@blueprint.get("/confirm")
def ask_to_confirm() -> flask.Response:
    """Show a button and a description of the mail to which the reader would subscribe."""
    link, now = mailed_links.opened_link(), context.now()
    request = double_opt_in.unused_request_of(link, secret=context.settings().secret, now=now)
    name = site_settings.get(request.site).name
    share = t("embed.subscribe-share", site=name) if request.thread else ""
    return mailed_links.page(
        t("embed.subscribe-title", site=name),
        t("embed.subscribe-question"),
        Button(t("embed.subscribe-confirm"), "subscriptions/confirm", share),
        purpose="confirm",
        **_page_values(request),
    )


@blueprint.post("/confirm")
def confirm() -> flask.Response:
    """Subscribe."""
    query_strings.read(parameters.NoQuery)
    sent = forms.read(ConfirmationForm)
    secret, now = context.settings().secret, context.now()
    link = form_tokens.read(sent.token, "confirm", secret, now=now)
    request = double_opt_in.confirm(link, secret=secret, now=now, shares=bool(sent.share))
    note = t("embed.subscribed-end")
    return mailed_links.page(
        t("embed.subscribed-title"), t("embed.subscribed"), note=note, **_page_values(request)
    )


@blueprint.get("/unsubscribe")
def ask_to_unsubscribe() -> flask.Response:
    """Show two buttons: one ends the subscription of this mail, and the other ends all mail.

    If the owner of the site may see the address, a third button ends this permission.
    """
    site = double_opt_in.sharing_site(mailed_links.opened_link(), context.settings().secret)
    name = site_settings.kept_site(site).name if site else ""
    share = Button(t("embed.unshare", site=name), "subscriptions/unsubscribe/address")
    return mailed_links.page(
        t("embed.unsubscribe-title"),
        t("embed.unsubscribe-question"),
        Button(t("embed.unsubscribe-one"), "subscriptions/unsubscribe"),
        Button(t("embed.unsubscribe-all"), "subscriptions/unsubscribe/all"),
        *([share] if site else []),
        purpose="unsubscribe",
    )


@blueprint.post("/unsubscribe")
def unsubscribe() -> flask.Response:
    """End the subscription that sent a mail. Repeating the request changes nothing.

    Mail programs send this POST to the link itself (RFC 8058). The button on the page sends a form
    token instead.
    """
    is_one_click = bool(flask.request.query_string)
    link = mailed_links.opened_link() if is_one_click else mailed_links.posted_link("unsubscribe")
    return _end(double_opt_in.unsubscribe, link, t("embed.unsubscribed-one"))


@blueprint.post("/unsubscribe/all")
def unsubscribe_from_everything() -> flask.Response:
    """Unsubscribe from everything and erase the address."""
    link = mailed_links.posted_link("unsubscribe")
    end = double_opt_in.unsubscribe_from_everything
    return _end(end, link, t("embed.unsubscribed-all"))


@blueprint.post("/unsubscribe/address")
def unshare() -> flask.Response:
    """Hide the address from the owner of the site; the subscription continues."""
    double_opt_in.unshare(mailed_links.posted_link("unsubscribe"), context.settings().secret)
    return mailed_links.page(t("embed.unshared-title"), t("embed.unshared"))


def _end(end: Callable[..., None], link: str, text: str) -> flask.Response:
    end(link, context.settings().secret, now=context.now())
    return mailed_links.page(t("embed.unsubscribed-title"), text)


def _page_values(request: double_opt_in.SubscriptionRequest) -> dict[str, Any]:
    return {"things": double_opt_in.things(request), "title": double_opt_in.title_of(request)}
