"""Manage webhooks, pending deliveries and dead letters: `webhook` and `delivery`.

A secret is shown once, by the command that creates it.
"""

from collections.abc import Callable

import click

from comments.cli import console
from comments.domain import outcomes
from comments.domain.text.shown_values import quantity
from comments.events import dead_letters, message_sender, safe_http, webhook_endpoints, webhooks
from comments.upkeep.backups import held_messages

_TYPES = ("comment.posted", "comment.edited", "comment.retracted", "comment.held")
_FORMS = ("flatthread", "slack", "discord", "telegram")

_hook = click.argument("name", metavar="WEBHOOK")
webhook = console.Group("webhook")
delivery = console.Group("delivery")


def _client() -> "safe_http.HttpClient":

    return message_sender.OUTBOUND.get()


@webhook.command("add", console.SITE)
@click.argument("url", metavar="[URL]", required=False)
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice(_TYPES),
    help="Default: all but comment.held; for chats, comment.posted and comment.held.",
)
@click.option("--form", type=click.Choice(_FORMS), default="flatthread", show_default=True)
@click.option("--chat", metavar="ID", help="The Telegram chat. The bot's token is asked for.")
def _add(
    site_id: str, url: str | None, types: tuple[str, ...], form: str, chat: str | None
) -> None:
    """Add a webhook or a chat for a site, and show a webhook's secret once."""
    is_telegram = form == webhooks.MessageForm.TELEGRAM
    if is_telegram != (url is None) or is_telegram != (chat is not None):
        raise click.UsageError("Use either URL, or --form telegram with --chat ID.")
    is_chat, now = form != webhooks.MessageForm.FLATTHREAD, console.now()
    default = webhooks.CHAT_TYPES if is_chat else webhooks.PUBLIC_TYPES
    wanted = tuple(kind for kind in webhooks.Type if kind in (types or default))
    if chat is not None:
        token = click.prompt("Token of the bot", hide_input=True)
        made = webhook_endpoints.new_telegram(token, chat, wanted, now=now)
    elif is_chat:
        made = webhook_endpoints.new_chat(webhooks.MessageForm(form), url or "", wanted, now=now)
    else:
        made = webhook_endpoints.new(url or "", wanted, now=now)
    webhook_endpoints.add(site_id, made, _client())
    click.echo(f"Added webhook {made.id} to {site_id}.")
    if made.secrets:
        click.echo(f"Secret (shown only once): {made.secrets[0]}")


@webhook.command("list", console.SITE)
def _list(site_id: str) -> None:
    """List a site's webhooks, one per line: id, state, types, address or chat."""
    for entry in webhook_endpoints.every(site_id):
        click.echo(f"{entry.id}\t{_state(entry)}\t{','.join(entry.types)}\t{_address(entry)}")


def _address(entry: "webhook_endpoints.Registered") -> str:
    is_chat = entry.form is not webhooks.MessageForm.FLATTHREAD
    return f"{entry.form}: {entry.public_address}" if is_chat else entry.public_address


def _state(each: "webhook_endpoints.Registered") -> str:
    if each.off:
        return f"off: {each.off}"
    if each.failing_since is None:
        return "on"
    since = each.failing_since.isoformat(timespec="seconds")
    return f"on, {quantity(each.failures, 'failure')} since {since}: {each.reason}"


@webhook.command("remove", console.SITE, _hook)
def _remove(site_id: str, name: str) -> None:
    """Remove a webhook. Pending messages for the webhook are not sent."""
    webhook_endpoints.remove(site_id, name)
    click.echo(f"Removed webhook {name} of {site_id}.")


@webhook.command("rotate", console.SITE, _hook)
@click.option("--leaked", is_flag=True, help="Stop signing with the old secret.")
def _rotate(site_id: str, name: str, *, leaked: bool) -> None:
    """Create a new secret, and show it once.

    Messages are signed with both secrets until the next rotation, unless --leaked is given.
    """
    made = webhook_endpoints.new_secret()
    webhook_endpoints.rotate(site_id, name, made, keeps_old=not leaked)
    click.echo(f"New secret of webhook {name} (shown only once): {made}")


@webhook.command("on", console.SITE, _hook)
def _switch_on(site_id: str, name: str) -> None:
    """Enable a webhook that is off or paused after failures."""
    webhook_endpoints.switch_on(site_id, name)
    click.echo(f"Webhook {name} of {site_id} is on.")


@webhook.command("test", console.SITE, _hook)
def _test(site_id: str, name: str) -> None:
    """Send a message of type `test` to a webhook, even if it is off. Exit with 1 on failure."""
    outcome = webhook_endpoints.send_test(_client(), site_id, name, now=console.now())
    click.echo(f"Webhook {name}: {outcome.reason}.")
    if outcome.end is not outcomes.End.DELIVERED:
        raise click.exceptions.Exit(1)


@delivery.command("status")
def _status() -> None:
    """Show the numbers of pending events, pending messages and dead letters."""
    waiting = dead_letters.count_waiting(console.now())
    events, messages, dead = (
        f"{number} or more" if number >= dead_letters.MOST_COUNTED else f"{number}"
        for number in (waiting.events, waiting.messages, waiting.dead)
    )
    pending = f"{quantity(events, 'event')}, {quantity(messages, 'message')}"
    has_any = waiting.events or waiting.messages
    age = f"; the oldest is {waiting.oldest} s old" if has_any else ""
    click.echo(f"Pending: {pending}{age}.")
    click.echo(f"Dead letters: {dead}.")


@delivery.command("dead")
@click.option("--after", default="", metavar="ID", help="Start after this dead letter.")
@click.option("--limit", default=50, type=click.IntRange(1, 1000), show_default=True)
def _dead(after: str, limit: int) -> None:
    """List dead letters, one per line: id, content, time, attempts, reason."""
    page = dead_letters.dead(after=after, limit=limit)
    for letter in page.letters:
        click.echo("\t".join(_columns(letter)))
    if page.after is not None:
        click.echo(f"There are more. Use --after {page.after}", err=True)


def _columns(letter: "dead_letters.DeadLetter") -> tuple[str, ...]:
    at = "?" if letter.at is None else letter.at.isoformat(timespec="seconds")
    return letter.id, letter.what, at, f"{letter.attempts}", letter.reason


@delivery.command("show")
@click.argument("letter_id", metavar="ID")
def _show(letter_id: str) -> None:
    """Show a pending or dead event or message."""
    letter = dead_letters.show(letter_id)
    name, what, at, attempts, reason = _columns(letter)
    state = "dead" if letter.is_dead else "pending"
    lines = {
        "id": name,
        "what": what,
        "at": at,
        "state": state,
        "attempts": attempts,
        "reason": reason or "none",
        "detail": letter.detail,
    }
    for label, value in lines.items():
        click.echo(f"{label}: {value}")


@delivery.command("revive")
@click.argument("letter_id", metavar="[ID]", required=False)
@click.option("--all", "is_all", is_flag=True, help="All dead letters.")
def _revive(letter_id: str | None, *, is_all: bool) -> None:
    """Retry dead letters from the start."""
    now = console.now()
    count = _settle(letter_id, is_all, lambda each: dead_letters.revive(each, now=now))
    click.echo(f"Revived {count}; they are retried within a minute.")


@delivery.command("hold")
def _hold() -> None:
    """Turn all pending mail and webhook messages into dead letters.

    Use this command after a database was restored and before anything else uses the database: its
    pending messages have probably been sent since the backup.
    """
    held = held_messages.hold(console.settings(), now=console.now())
    click.echo(f"Held {quantity(held, 'message')} (`delivery dead`).")


@delivery.command("drop")
@click.argument("letter_id", metavar="[ID]", required=False)
@click.option("--all", "is_all", is_flag=True, help="All dead letters.")
def _drop(letter_id: str | None, *, is_all: bool) -> None:
    """Discard dead letters permanently. Run `recount` if a discarded event concerned counters."""
    click.echo(f"Discarded {_settle(letter_id, is_all, dead_letters.drop)}.")


def _settle(letter_id: str | None, is_all: bool, verb: Callable[[str], None]) -> int:  # noqa: FBT001 - the two ways to choose letters

    if (letter_id is None) != is_all:
        raise click.UsageError("Use either ID or --all.")
    if letter_id is not None:
        verb(letter_id)
        return 1
    return dead_letters.settle_all(dead_letters.dead_ids(), verb)
