"""The webhooks of a site, for owners: add, test and remove them, and resend failed messages.

The operations are those of the command `webhook`. A secret is shown once, in the response to the
request that created it.
"""

import functools
from collections.abc import Callable
from datetime import datetime

import flask

from comments import errors
from comments.domain import outcomes
from comments.events import (
    dead_letters,
    message_queue,
    message_sender,
    webhook_endpoints,
    webhooks,
)
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields, settings_forms
from comments.web.rendering import labels

blueprint = site_visit.owner_blueprint("connections")

_MOST_DEAD = 20  # Maximum number of failed messages that the page shows for a webhook.


@blueprint.page("/connections")
def show(visit: site_visit.Visit, _query: object) -> flask.Response:
    """Show the webhooks with their last results, and a form to add one."""
    return _page(visit)


@blueprint.form("/connections", settings_forms.WebhookForm)
def add(visit: site_visit.Visit, sent: settings_forms.WebhookForm) -> flask.Response:
    """Add a webhook, and show its secret."""
    types = tuple(kind for kind in webhooks.Type if getattr(sent, kind.name.lower()))
    if not types:
        raise errors.BadInput("types", "too-few-items", minimum=1)
    made = _new(sent, types, visit.now)
    noted = site_visit.audit_entry(visit, sent.reason, "set-hook")
    webhook_endpoints.add(visit.site.id, made, message_sender.OUTBOUND.get(), noted=noted)
    return _page(visit, said=labels.text("admin.hooks-added"), made="".join(made.secrets))


def _new(
    sent: settings_forms.WebhookForm, types: tuple[webhooks.Type, ...], now: datetime
) -> webhook_endpoints.Registered:
    if sent.kind is webhooks.MessageForm.TELEGRAM:
        token, chat = (
            form_fields.require(name, getattr(sent, name)).strip() for name in ("token", "chat")
        )
        return webhook_endpoints.new_telegram(token, chat, types, now=now)
    url = form_fields.require("url", sent.url).strip()
    if sent.kind is webhooks.MessageForm.FLATTHREAD:
        return webhook_endpoints.new(url, types, now=now)
    return webhook_endpoints.new_chat(sent.kind, url, types, now=now)


@blueprint.form("/connections/change", settings_forms.WebhookChangeForm)
def change(visit: site_visit.Visit, sent: settings_forms.WebhookChangeForm) -> flask.Response:
    """Test, enable or remove a webhook, change its secret, or resend a failed message."""
    site = visit.site.id
    noted = site_visit.audit_entry(visit, sent.reason, "set-hook")
    made = ""
    hook = webhook_endpoints.get(site, sent.id)
    if sent.act == "test":
        return _page(visit, said=_test(site, hook.id, visit.now))
    if sent.act == "enable":
        webhook_endpoints.switch_on(site, hook.id, noted=noted)
    elif sent.act == "remove":
        webhook_endpoints.remove(site, hook.id, noted=noted)
    elif sent.act in {"rotate", "replace"}:
        made, keeps_old = webhook_endpoints.new_secret(), sent.act == "rotate"
        webhook_endpoints.rotate(site, hook.id, made, keeps_old=keeps_old, noted=noted)
    elif sent.act.endswith("-all"):
        count = _settle_all(site, hook.id, sent.act, visit.now)
        return _page(visit, said=labels.text(f"admin.hooks-settled-{sent.act}", count=count))
    else:
        _settle(site, hook.id, sent.act, form_fields.require("letter", sent.letter), visit.now)
    return _page(visit, said=labels.text(f"admin.hooks-did-{sent.act}"), made=made)


def _test(site: str, name: str, now: datetime) -> str:
    outcome = webhook_endpoints.send_test(message_sender.OUTBOUND.get(), site, name, now=now)
    is_delivered = outcome.end is outcomes.End.DELIVERED
    key = "admin.hooks-test-delivered" if is_delivered else "admin.hooks-test-failed"
    return labels.text(key, reason=outcome.reason)


def _settle(site: str, name: str, act: str, letter: str, now: datetime) -> None:
    # Owners of one site must not decide about the messages of another.
    if dead_letters.show(letter).what != webhook_endpoints.queue(site, name):
        raise errors.NotFound("letter", letter)
    _verb(act, now)(letter)


def _settle_all(site: str, name: str, act: str, now: datetime) -> int:
    queue = webhook_endpoints.queue(site, name)
    ids = message_queue.dead_ids(queue, dead_letters.MOST_SETTLED)
    return dead_letters.settle_all(ids, _verb(act, now))


def _verb(act: str, now: datetime) -> Callable[[str], None]:
    is_resend = act.startswith("resend")
    return functools.partial(dead_letters.revive, now=now) if is_resend else dead_letters.drop


def _page(visit: site_visit.Visit, said: str = "", made: str = "") -> flask.Response:
    site = visit.site.id
    hooks = webhook_endpoints.every(site)
    dead = {
        hook.id: dead_letters.of_queue(webhook_endpoints.queue(site, hook.id), limit=_MOST_DEAD)
        for hook in hooks
    }
    return site_visit.page(
        "connections.html",
        visit,
        hooks=hooks,
        dead=dead,
        types={
            "server": webhooks.PUBLIC_TYPES,
            "chat": webhooks.CHAT_TYPES,
            "all": [*webhooks.Type],
        },
        said=said,
        made=made,
    )


blueprint.show_again(show)
