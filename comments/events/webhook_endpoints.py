"""Webhook endpoints: the addresses that a site's owner registered, and the state of each.

This module owns the kind SiteHooks, with one row for each site that has hooks:

    SiteHooks  key: the site's id
               hooks: JSON, a list of `Registered`

All of a site's hooks are in one row, so the transaction that turns events into messages reads one
entity per site and sees exactly the current hooks.

An address is checked when it is registered, and again at each attempt (`safe_http`). A failing hook
is paused for a time that doubles with each failure, or for longer if its response requested a
longer pause. A hook is *disabled* with a reason if no delivery has succeeded for `FAILING_FOR`, if
it answered 410, or if its address is not public. A disabled hook receives no messages until its
owner enables it; its pending messages become dead letters. Imports and changes that readers do not
see cause no messages.

A hook keeps its `RECENT` last results. A success within `QUIET` of the newest result is not stored,
so a busy site does not write its row once per message.
"""

import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import msgspec

from comments import errors
from comments.domain import decoders, outcomes, records
from comments.domain.languages import catalogue
from comments.events import (
    audit_log,
    message_queue,
    outbox,
    retry_pauses,
    safe_http,
    webhooks,
)
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, conversion, event_rows

_OWNER = "webhook_endpoints"
CHANNEL = "hook"
MOST = 10  # Maximum number of hooks per site
FAILING_FOR = timedelta(days=3)
RECENT = 10  # Maximum number of results that a hook keeps.
QUIET = timedelta(minutes=1)
_SECRET_BYTES = 32
_APPROVED = records.Status.APPROVED.value
_PENDING = records.Status.PENDING.value
TELEGRAM = "https://api.telegram.org"
_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{20,100}")
_CHAT = re.compile(r"-?[0-9]{1,20}|@[A-Za-z0-9_]{1,64}")
ChatText = Callable[[webhooks.MessageForm, webhooks.Type, records.Case, records.Thread | None], str]
_TOLD_OF = outbox.OF_COMMENTS - {outbox.EventKind.IMPORTED}


class Result(msgspec.Struct, frozen=True):
    """The result of an attempt to send a message, such as "answered 200"."""

    at: datetime
    reason: str
    is_delivered: bool
    is_test: bool = False


class Registered(msgspec.Struct, frozen=True):
    """A hook in its stored form.

    `off` is the reason why the hook is disabled; it is empty while the hook is enabled.

    `failures` to `reason` cover the time since the last successful delivery. `recent` contains the
    last results, newest first.

    The address of a chat contains its secret, so nothing shows or logs it (`public_address`).
    `chat` is the id of a Telegram chat. A chat has no signing secrets.
    """

    id: str
    url: str
    secrets: tuple[str, ...]
    types: tuple[webhooks.Type, ...]
    created: datetime
    off: str = ""
    failures: int = 0
    failing_since: datetime | None = None
    paused_until: datetime | None = None
    reason: str = ""
    recent: tuple[Result, ...] = ()
    form: webhooks.MessageForm = webhooks.MessageForm.FLATTHREAD
    chat: str = ""

    @property
    def public_address(self) -> str:
        """Return the address without the secret of a chat."""
        if self.form is webhooks.MessageForm.FLATTHREAD:
            return self.url
        return self.chat or f"{urlsplit(self.url).netloc}/…"

    @property
    def hook(self) -> webhooks.Hook:
        """Return the address, and the secrets that sign messages to it."""
        return webhooks.Hook(self.url, self.secrets)


class WebhookContent(msgspec.Struct, frozen=True):
    """The content of a webhook message. The event's id contains the comment's id."""

    type: webhooks.Type


def new(url: str, types: tuple[webhooks.Type, ...], *, now: datetime) -> Registered:
    """Make a hook with a new id and secret, for `add`."""
    return Registered(secrets.token_hex(4), url, (new_secret(),), types, created=now)


def new_chat(
    form: webhooks.MessageForm, url: str, types: tuple[webhooks.Type, ...], *, now: datetime
) -> Registered:
    """Make a hook with a new id for a chat in Slack or Discord, for `add`."""
    return Registered(secrets.token_hex(4), url, (), types, created=now, form=form)


def new_telegram(
    token: str, chat: str, types: tuple[webhooks.Type, ...], *, now: datetime
) -> Registered:
    """Make a hook with a new id for a chat in Telegram, for `add`.

    Raises:
        errors.BadInput: the bot's token or the chat's id is malformed.
    """
    for field, text, pattern in (("token", token, _TOKEN), ("chat", chat, _CHAT)):
        if not pattern.fullmatch(text):
            raise errors.BadInput(field, "bad-input")
    made = new_chat(
        webhooks.MessageForm.TELEGRAM, f"{TELEGRAM}/bot{token}/sendMessage", types, now=now
    )
    return msgspec.structs.replace(made, chat=chat)


def new_secret() -> str:
    return webhooks.secret(secrets.token_bytes(_SECRET_BYTES))


def add(
    site: str,
    made: Registered,
    client: safe_http.HttpClient,
    *,
    noted: audit_log.Noted | None = None,
) -> None:
    """Register a hook.

    Raises:
        errors.UnsafeAddress: the hook's address is not https or not public.
        errors.BadInput: the address's host name does not resolve.
        errors.NotFound: the site does not exist.
        errors.Conflict: the address is already registered, the site has `MOST` hooks, or it is a
            staging copy.
    """
    every(site)
    row = reads.get(comment_rows.site_key(site))
    if row is not None and row.copy_of:
        raise errors.Conflict("site-copy")
    client.vet(made.url)

    def change(found: list[Registered]) -> list[Registered]:
        if any(hook.id == made.id for hook in found):
            return found  # An earlier run committed this, but the response was lost.
        if any((hook.url, hook.chat) == (made.url, made.chat) for hook in found):
            raise errors.Conflict("hook-exists", value=made.public_address)
        if len(found) >= MOST:
            raise errors.Conflict("too-many-hooks", limit=MOST)
        return [*found, made]

    _change(site, change, _audit_writes(noted, site, made.id, "added"))


def every(site: str) -> tuple[Registered, ...]:
    """List a site's hooks, oldest first.

    Raises:
        errors.NotFound: the site does not exist.
    """
    row = reads.get(comment_rows.site_key(site)) if site else None
    if row is None or row.deleted is not None:
        raise errors.NotFound("site", site)
    return _stored_hooks([site])[0]


def get(site: str, name: str) -> Registered:
    """Return one of a site's hooks.

    Raises:
        errors.NotFound: the hook does not exist.
    """
    return _by_name(every(site), name)


def remove(site: str, name: str, *, noted: audit_log.Noted | None = None) -> None:
    """Delete a hook. The hook's pending messages are not sent.

    Raises:
        errors.NotFound: the hook does not exist.
    """
    every(site)

    def change(found: list[Registered]) -> list[Registered]:
        if not transactions.may_have_run():
            _by_name(found, name)
        return [hook for hook in found if hook.id != name]

    _change(site, change, _audit_writes(noted, site, name, "removed"))


def rotate(
    site: str, name: str, secret: str, *, keeps_old: bool, noted: audit_log.Noted | None = None
) -> None:
    """Sign with a new secret from now on, and also with the previous one if `keeps_old` is set.

    Do not set `keeps_old` if the old secret has leaked.

    Raises:
        errors.NotFound: the hook does not exist. errors.Conflict: the hook is a chat.
    """

    def change(hook: Registered) -> Registered:
        if not hook.secrets:
            raise errors.Conflict("hook-unsigned")
        if hook.secrets[0] == secret:
            return hook  # An earlier run committed this, but the response was lost.
        kept = (secret, hook.secrets[0]) if keeps_old else (secret,)
        return msgspec.structs.replace(hook, secrets=kept)

    _change_one(site, name, change, _audit_writes(noted, site, name, "rotated"))


def switch_on(site: str, name: str, *, noted: audit_log.Noted | None = None) -> None:
    """Enable a hook again, as if it had never failed.

    Raises:
        errors.NotFound: the hook does not exist.
    """
    _change_one(site, name, _well, _audit_writes(noted, site, name, "enabled"))


def send_test(
    client: safe_http.HttpClient, site: str, name: str, *, now: datetime
) -> outcomes.Outcome:
    """Send a message of type `test` to a hook, even if it is disabled.

    A failure does not count against the hook.

    Raises:
        errors.NotFound: the hook does not exist.
    """
    hook = get(site, name)
    if hook.form is webhooks.MessageForm.FLATTHREAD:
        event, payload = f"test.{secrets.token_hex(8)}", webhooks.test_body(site, now)
        outcome = webhooks.send(client, hook.hook, event, payload, now=now)
    else:
        outcome = _send_text(client, hook, catalogue.ENGLISH.text("admin.chat-test", site=site))
    _change_one(site, name, lambda hook: _with_result(hook, outcome, now, is_test=True))
    return outcome


def message_writes(events: Sequence[outbox.Event]) -> ownership.Writes:
    """Turn events into messages for every enabled hook that is registered for their types.

    Call this function in the transaction that records the events as done.
    """
    typed_events = [(event, type_) for event in events if (type_ := _type(event)) is not None]
    sites = list(dict.fromkeys(_site(event) for event, _ in typed_events))
    hooks = dict(zip(sites, _stored_hooks(sites), strict=True))
    rows: list[event_rows.MessageRow] = []
    for event, type_ in typed_events:
        site = _site(event)
        queues = [
            queue(site, hook.id) for hook in hooks[site] if type_ in hook.types and not hook.off
        ]
        content = msgspec.json.encode(WebhookContent(type_)).decode()
        rows += message_queue.new_rows(event.id, queues, content, at=event.at)
    return message_queue.writes(rows)


def queue(site: str, name: str) -> str:
    return message_queue.queue(CHANNEL, f"{site}/{name}")


def find(recipient: str) -> Registered | None:
    """Return a queue's hook; None if the hook was removed or the site is deleted."""
    name, _, hook_id = recipient.partition("/")
    keys = [comment_rows.site_key(name), event_rows.site_hooks_key(name)]
    site, row = reads.get_multi(keys)
    if site is None or site.deleted is not None or row is None:
        return None
    return next((hook for hook in _decode(row.hooks) if hook.id == hook_id), None)


def tell(
    client: safe_http.HttpClient,
    hook: Registered,
    message: message_queue.Message,
    chat_text: ChatText,
    *,
    now: datetime,
) -> outcomes.Outcome:
    """Send a hook one message about the comment's current state.

    If the comment was deleted, nothing is sent. A chat also gets nothing if the message no longer
    describes the comment.
    """
    comment_id = message.event.partition(".")[0]
    row = reads.get(comment_rows.comment_key(comment_id))
    if row is None:
        return outcomes.Outcome(outcomes.End.DELIVERED, "the comment no longer exists")
    thread = reads.get(comment_rows.thread_key_of(row.thread))
    about = None if thread is None else conversion.thread_record(thread)
    type_ = decoders.json(WebhookContent).decode(message.content).type
    if hook.form is not webhooks.MessageForm.FLATTHREAD:
        case = conversion.case_record(row)
        if not _describes(type_, case.comment.status):
            return outcomes.Outcome(outcomes.End.DELIVERED, "the comment has changed since")
        return _send_text(client, hook, chat_text(hook.form, type_, case, about))
    payload = webhooks.body(type_, message.at, conversion.comment_record(row), about)
    return webhooks.send(client, hook.hook, message.event, payload, now=now)


def _describes(type_: webhooks.Type, status: records.Status) -> bool:
    if type_ is webhooks.Type.HELD:
        return status is records.Status.PENDING
    return (status is records.Status.APPROVED) is (type_ is not webhooks.Type.RETRACTED)


def _send_text(client: safe_http.HttpClient, hook: Registered, text: str) -> outcomes.Outcome:
    payload = webhooks.chat_body(hook.form, hook.chat, text)
    return webhooks.post(client, hook.url, payload, webhooks.CHAT_HEADERS)[0]


def is_worth_noting(hook: Registered, outcome: outcomes.Outcome, *, now: datetime) -> bool:
    """Return whether `note` must record an outcome: any but one of many successes in a row."""
    is_quiet = bool(hook.recent) and now - hook.recent[0].at < QUIET
    return bool(hook.failures) or outcome.end is not outcomes.End.DELIVERED or not is_quiet


def note(recipient: str, outcome: outcomes.Outcome, *, now: datetime) -> None:
    """Record the outcome of a delivery attempt to a hook."""
    site, _, name = recipient.partition("/")

    def change(found: list[Registered]) -> list[Registered]:
        return [_after_outcome(hook, outcome, now) if hook.id == name else hook for hook in found]

    _change(site, change)


def _with_result(
    hook: Registered, outcome: outcomes.Outcome, now: datetime, *, is_test: bool = False
) -> Registered:
    result = Result(now, outcome.reason, outcome.end is outcomes.End.DELIVERED, is_test)
    return msgspec.structs.replace(hook, recent=(result, *hook.recent[: RECENT - 1]))


def _after_outcome(hook: Registered, outcome: outcomes.Outcome, now: datetime) -> Registered:
    hook = _with_result(hook, outcome, now)
    if outcome.end is outcomes.End.DELIVERED:
        return hook if hook.off else _well(hook)
    since, failures = hook.failing_since or now, hook.failures + 1
    off = hook.off
    if outcome.end is outcomes.End.GIVE_UP:
        off = off or outcome.reason
    elif now - since >= FAILING_FOR:
        off = off or f"no successful delivery for {FAILING_FOR.days} days: {outcome.reason}"
    return msgspec.structs.replace(
        hook,
        off=off,
        failures=failures,
        failing_since=since,
        paused_until=now + pause(failures, outcome),
        reason=outcome.reason,
    )


def pause(attempts: int, outcome: outcomes.Outcome) -> timedelta:
    """Return the pause after this number of failures, or the hook's requested pause if longer."""
    return max(retry_pauses.pause(attempts), timedelta(seconds=outcome.retry_after or 0))


def _well(hook: Registered) -> Registered:
    return msgspec.structs.replace(
        hook, off="", failures=0, failing_since=None, paused_until=None, reason=""
    )


def _type(event: outbox.Event) -> webhooks.Type | None:
    """Return the type of change that readers saw, or `HELD` if moderators must review a comment.

    Return None for all other changes.
    """
    if event.kind not in _TOLD_OF or not event.changes:
        return None
    # The comment's own change comes first; changes to the tombstones above the comment follow.
    old, new = event.changes[0]
    was, is_ = (seen is not None and seen.status == _APPROVED for seen in event.changes[0])
    if was and is_:
        return webhooks.Type.EDITED if event.kind is outbox.EventKind.EDITED else None
    if was or is_:
        return webhooks.Type.RETRACTED if was else webhooks.Type.POSTED
    was_held, is_held = (seen is not None and seen.status == _PENDING for seen in (old, new))
    return webhooks.Type.HELD if is_held and not was_held else None


def _site(event: outbox.Event) -> str:
    state = event.changes[0].new or event.changes[0].old
    return state.site if state else ""


def _by_name(found: Iterable[Registered], name: str) -> Registered:
    for hook in found:
        if hook.id == name:
            return hook
    raise errors.NotFound("hook", name)


def _stored_hooks(sites: Sequence[str]) -> list[tuple[Registered, ...]]:
    rows = reads.get_multi([event_rows.site_hooks_key(site) for site in sites])
    return [() if row is None else _decode(row.hooks) for row in rows]


def _decode(text: str) -> tuple[Registered, ...]:
    return decoders.json(tuple[Registered, ...]).decode(text)


def _change_one(
    site: str,
    name: str,
    change: Callable[[Registered], Registered],
    entry: Sequence[ownership.Writes] = (),
) -> None:
    def change_named(found: list[Registered]) -> list[Registered]:
        _by_name(found, name)
        return [change(hook) if hook.id == name else hook for hook in found]

    every(site)
    _change(site, change_named, entry)


def _change(
    site: str,
    change: Callable[[list[Registered]], list[Registered]],
    entry: Sequence[ownership.Writes] = (),
) -> None:
    def body() -> None:
        before = list(_stored_hooks([site])[0])
        after = change(before)
        if after != before:
            text = msgspec.json.encode(after).decode()
            row = event_rows.SiteHooksRow(key=event_rows.site_hooks_key(site), hooks=text)
            transactions.apply(ownership.Writes(_OWNER, put=(row,)), *entry)

    transactions.transaction(body)


def _audit_writes(
    noted: audit_log.Noted | None, site: str, name: str, done: str
) -> tuple[ownership.Writes, ...]:
    """Return the audit log entry for a change; it does not contain the address."""
    if noted is None:
        return ()
    return (
        audit_log.entry_writes(
            noted.act, site, f"hook:{name}", before="", after=done, now=noted.now
        ),
    )
