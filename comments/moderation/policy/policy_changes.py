"""Change the moderation settings of a site and its threads.

These settings are policies, rules, bans, locks and classifiers. The caller must have checked that
the actor is allowed to make the change.

Each change is one transaction that also writes an audit log entry. The entry for a change to a
policy, ban or lock stores the previous state (`back`, JSON), so the change can be undone as long as
no later change has replaced its result. The stored state of a ban contains no caller marks. Entries
about rules store no previous state, because a rule may name networks, which the log must not
contain. Disabling a rule has the same effect as removing it, and can be reversed.
"""

import functools
import secrets
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

import msgspec

from comments import errors
from comments.domain import decoders, records
from comments.domain.ids import author_ids
from comments.domain.moderation import classifier_verdicts
from comments.domain.records import Actor, Policy, ThreadState
from comments.events import audit_log
from comments.moderation.policy import author_links, rulebook, rules
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, conversion
from comments.threads import thread_terms

_MOST_AUTHOR = 200  # Maximum number of characters in an author id.
_SET_THREAD = "set-thread"
_THREAD, _AUTHOR = "thread:", "author:"  # Prefixes of audit log subjects
_OPPOSITES = {"ban": "unban", "unban": "ban"}
# A function that converts a classifier's old registration to its new registration. None stands for
# a classifier that is not registered.
ClassifierChange = Callable[
    [classifier_verdicts.Classifier | None], classifier_verdicts.Classifier | None
]


def set_policy(  # noqa: PLR0913 - each can be changed separately
    site: str,
    actor: Actor,
    *,
    now: datetime,
    policy: Policy | None = None,
    close_after: int | None = None,
    reports: int | None = None,
    reason: str = "",
) -> rulebook.Rulebook:
    """Change a site's policy. An argument that is None keeps its stored value.

    Raises:
        errors.BadInput: a number is out of range, or the reason is too long or is not a single
            line.
    """
    given = {"policy": policy, "close_after": close_after, "reports": reports}
    wanted = {name: value for name, value in given.items() if value is not None}
    act = audit_log.Act(actor, "set-policy", reason)
    change = functools.partial(msgspec.structs.replace, **wanted)
    return _change(site, act, "site", change, _POLICY, now=now)


def put_rule(
    site: str, rule: rules.Rule, actor: Actor, *, now: datetime, reason: str = ""
) -> rulebook.Rulebook:
    """Add a rule, or replace the rule with the same id without changing its position.

    Raises:
        errors.BadInput: the rule is invalid; the error names the condition.
    """
    rules.check_hosts(rule)

    def change(book: rulebook.Rulebook) -> rulebook.Rulebook:
        known = [other.id for other in book.rules]
        put = [rule if other.id == rule.id else other for other in book.rules]
        return msgspec.structs.replace(book, rules=(*put, *(() if rule.id in known else (rule,))))

    act = audit_log.Act(actor, "put-rule", reason)
    return _change(site, act, f"rule:{rule.id}", change, _rule_of(rule.id), now=now)


def remove_rule(
    site: str, rule_id: str, actor: Actor, *, now: datetime, reason: str = ""
) -> rulebook.Rulebook:
    """Remove a rule.

    Raises:
        errors.NotFound: the site has no rule with this id.
    """

    def change(book: rulebook.Rulebook) -> rulebook.Rulebook:
        left = tuple(rule for rule in book.rules if rule.id != rule_id)
        if len(left) == len(book.rules):
            raise errors.NotFound("rule", rule_id)
        return msgspec.structs.replace(book, rules=left)

    act = audit_log.Act(actor, "remove-rule", reason)
    return _change(site, act, f"rule:{rule_id}", change, _rule_of(rule_id), now=now)


def set_classifier(
    site: str,
    name: str,
    change: ClassifierChange,
    actor: Actor,
    *,
    now: datetime,
    reason: str = "",
) -> rulebook.Rulebook:
    """Apply `change` to the registration of a site's classifier.

    The audit log records the terms, but neither the address nor the secret.
    """

    def change_book(book: rulebook.Rulebook) -> rulebook.Rulebook:
        after = change(book.classifier(name))
        others = [other for other in book.classifiers if other.name != name]
        classifiers = others if after is None else [*others, after]
        return msgspec.structs.replace(
            book, classifiers=tuple(sorted(classifiers, key=lambda each: each.name))
        )

    act = audit_log.Act(actor, "set-adviser", reason)
    return _change(site, act, f"adviser:{name}", change_book, _terms_of(name), now=now)


def ban(  # noqa: PLR0913 - the ban and the actor
    site: str,
    author: str,
    actor: Actor,
    *,
    now: datetime,
    until: datetime | None = None,
    is_shadow: bool = False,
    reason: str = "",
    known: rulebook.BanMarks | None = None,
) -> rulebook.Rulebook:
    """Ban an author with all linked ids from a site, either until a given time or permanently.

    `author` is the author id from a token or an account. Bans ignore names, because anyone can use
    any name. Existing comments do not change. The caller marks in `known` recognize the author even
    under a different id (`bans`).

    Raises:
        errors.BadInput: `author` is not an author id, `until` is in the past, or there are too many
            bans.
    """
    # Without this check, a mistyped id would be banned silently, and the intended author could
    # continue to post.
    if not author_ids.is_one(author) or len(author) > _MOST_AUTHOR:
        raise errors.BadInput("author", "bad-author-id")
    if until is not None and until <= now:
        raise errors.BadInput("until", "in-the-past")
    made = rulebook.Ban(author, until, is_shadow, known or rulebook.BanMarks())

    act, part = audit_log.Act(actor, "ban", reason), _ban_of(site, author, now)
    change = functools.partial(_with_ban, site=site, author=author, ban=made)
    return _change(site, act, f"{_AUTHOR}{author}", change, part, now=now)


def unban(
    site: str, author: str, actor: Actor, *, now: datetime, reason: str = ""
) -> rulebook.Rulebook:
    """Remove the bans of an author and of all linked ids.

    Raises:
        errors.NotFound: the author is not banned.
    """

    def change(book: rulebook.Rulebook) -> rulebook.Rulebook:
        if book.ban_of(author, now) is None:
            raise errors.NotFound("ban", author)
        return _with_ban(book, site, author, None)

    act = audit_log.Act(actor, "unban", reason)
    return _change(site, act, f"{_AUTHOR}{author}", change, _ban_of(site, author, now), now=now)


def set_thread(  # noqa: PLR0913 - same as `set_policy`
    name: records.ThreadName,
    actor: Actor,
    *,
    now: datetime,
    state: ThreadState | None = None,
    policy: Policy | None = None,
    inherits: bool = False,
    reason: str = "",
) -> records.Thread:
    """Lock or open a thread, set its own policy, or make it inherit the site's policy.

    Raises:
        errors.NotFound: the thread has no comments yet.
    """

    def change(row: comment_rows.ThreadRow) -> None:
        row.state = row.state if state is None else state.value
        row.policy = row.policy if policy is None else policy.value
        if inherits:
            row.policy = ""

    act = audit_log.Act(actor, _SET_THREAD, reason)
    return _change_thread(name.site, comment_rows.thread_key_name(name), act, change, now=now)


def undo(
    site: str, entry_id: str, actor: Actor, *, now: datetime, reason: str = ""
) -> records.Audit:
    """Undo the change to a policy, ban or thread in an audit log entry, and return the entry.

    Comments that were hidden together with a ban stay hidden; `decisions.decide_all` restores
    them.

    Raises:
        errors.NotFound: the site's log does not contain the entry.
        errors.Conflict: the state has changed since, or this function cannot undo the entry.
    """
    entry = audit_log.entry(site, entry_id)
    if not entry.back:
        raise errors.Conflict("not-undoable")
    if entry.verb == _SET_THREAD:
        state, policy = decoders.json(tuple[ThreadState, str]).decode(entry.back)

        def change_thread(row: comment_rows.ThreadRow) -> None:
            _check_stands(_state_in_words(row), entry)
            row.state, row.policy = state.value, policy

        act = audit_log.Act(actor, _SET_THREAD, reason)
        thread = entry.subject.removeprefix(_THREAD)
        _change_thread(site, thread, act, change_thread, now=now)
        return entry
    author = entry.subject.removeprefix(_AUTHOR)
    part = _POLICY if entry.subject == "site" else _ban_of(site, author, now)

    def change(book: rulebook.Rulebook) -> rulebook.Rulebook:
        _check_stands(part.say(book), entry)
        return part.restore(book, entry.back)

    # Undoing a ban that replaced an earlier ban restores the earlier ban.
    verb = entry.verb if entry.before and entry.after else _OPPOSITES.get(entry.verb, entry.verb)
    act = audit_log.Act(actor, verb, reason)
    _change(site, act, entry.subject, change, part, now=now)
    return entry


def _check_stands(now: str, entry: records.Audit) -> None:
    if now != entry.after:
        raise errors.Conflict("decided-since")


def new_rule_id() -> str:
    """Return a random id for a new rule that has no id yet."""
    return secrets.token_hex(4)


def _change(
    site: str,
    act: audit_log.Act,
    subject: str,
    change: Callable[[rulebook.Rulebook], rulebook.Rulebook],
    part: "_Part",
    *,
    now: datetime,
) -> rulebook.Rulebook:
    if not site:
        raise errors.NotFound("site", site)

    def body() -> rulebook.Rulebook:
        if transactions.may_have_run() and audit_log.is_done(act):
            return rulebook.from_store(site)
        before, book, writes = rulebook.change_writes(site, change, now=now)
        text_before, says = part.say(before), part.say(book)
        back = part.keep(before) if text_before != says else ""
        note = audit_log.entry_writes(
            act, site, subject, before=text_before, after=says, now=now, back=back
        )
        transactions.apply(writes, note)
        return book

    book = transactions.transaction(body)
    rulebook.forget(site)
    return book


def _change_thread(
    site: str,
    thread: str,
    act: audit_log.Act,
    change: Callable[[comment_rows.ThreadRow], None],
    *,
    now: datetime,
) -> records.Thread:
    """Change the state or policy of a thread, and log the change.

    `thread` is the thread's key name.
    """

    def body() -> records.Thread:
        row = reads.get(comment_rows.thread_key_of(thread))
        if row is None:
            raise errors.NotFound("thread", thread.partition("/")[2] or thread)
        if transactions.may_have_run() and audit_log.is_done(act):
            return conversion.thread_record(row)
        before, back = _state_in_words(row), _encode((row.state, row.policy))
        change(row)
        if (after := _state_in_words(row)) != before:
            note = audit_log.entry_writes(
                act, site, f"{_THREAD}{thread}", before=before, after=after, now=now, back=back
            )
            written = ownership.Writes("policy_changes", put=(row,))
            transactions.apply(written, thread_terms.copy_writes(row), note)
        return conversion.thread_record(row)

    changed = transactions.transaction(body, line=thread)
    thread_terms.refresh(changed)
    return changed


def _encode(value: object) -> str:
    return msgspec.json.encode(value).decode()


class _Part(NamedTuple):
    """The part of a rulebook that an audit log entry covers.

    `say` describes this part in words, `keep` encodes it for the log, and `restore` writes it back.
    """

    say: Callable[[rulebook.Rulebook], str]
    keep: Callable[[rulebook.Rulebook], str] = lambda _: ""
    restore: Callable[[rulebook.Rulebook, str], rulebook.Rulebook] = lambda book, _: book


def _put_policy(book: rulebook.Rulebook, back: str) -> rulebook.Rulebook:
    policy, close_after, reports = decoders.json(tuple[Policy, int, int]).decode(back)
    return msgspec.structs.replace(book, policy=policy, close_after=close_after, reports=reports)


_POLICY = _Part(
    lambda book: f"{book.policy}, closed after {book.close_after} days, {book.reports} reports",
    lambda book: _encode((book.policy, book.close_after, book.reports)),
    _put_policy,
)


def _rule_of(rule_id: str) -> _Part:
    return _Part(
        lambda book: next((rule.action.value for rule in book.rules if rule.id == rule_id), "")
    )


def _terms_of(name: str) -> _Part:
    def say(book: rulebook.Rulebook) -> str:
        classifier = book.classifier(name)
        return "" if classifier is None else classifier_verdicts.terms_in_words(classifier)

    return _Part(say)


def _ban_of(site: str, author: str, now: datetime) -> _Part:
    def say(book: rulebook.Rulebook) -> str:
        entry = book.ban_of(author, now)
        if entry is None:
            return ""
        kind = "shadow-banned" if entry.is_shadow else "banned"
        text = kind if entry.until is None else f"{kind} until {entry.until.isoformat()}"
        if entry.known.network_until is not None:
            text += f", with the network until {entry.known.network_until.isoformat()}"
        return f"{text}, with the mailbox" if entry.known.mailbox else text

    def put(book: rulebook.Rulebook, back: str) -> rulebook.Rulebook:
        entry = decoders.json(rulebook.Ban | None).decode(back)
        return _with_ban(book, site, author, entry)

    def keep(book: rulebook.Rulebook) -> str:
        entry = book.ban_of(author, now)
        if entry is not None:
            # Omit the caller marks, because marks must expire but the log is permanent.
            known = rulebook.BanMarks(entry.known.comment)
            entry = msgspec.structs.replace(entry, known=known)
        return _encode(entry)

    return _Part(say, keep, put)


def _with_ban(
    book: rulebook.Rulebook, site: str, author: str, ban: rulebook.Ban | None
) -> rulebook.Rulebook:
    """Replace the bans of an author and of all linked ids in the current transaction."""
    ids = author_links.person(site, author)
    others = (entry for entry in book.bans if entry.author not in ids)
    made = (msgspec.structs.replace(ban, author=one) for one in ids) if ban is not None else ()
    return msgspec.structs.replace(book, bans=(*others, *made))


def _state_in_words(row: comment_rows.ThreadRow) -> str:
    return f"{row.state} {row.policy}".strip()
