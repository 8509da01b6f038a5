"""How a site and its threads are moderated: policy, rules, bans, locks, advisers; all is noted.

Owns the changes of a rulebook and of what a thread says of itself. Whoever calls has made sure that
the actor may. Each is one transaction with its entry of the audit log, and is done once however
often it runs.
"""

import secrets
from collections.abc import Callable
from datetime import datetime

import msgspec

from comments import audit, datastore, errors, models, opinions, records, rulebook, rules
from comments.records import Actor, Policy, ThreadState

_MOST_AUTHOR = 200  # characters of an author's id
# What becomes of an adviser; None for who is not asked.
Advised = Callable[[opinions.Adviser | None], opinions.Adviser | None]


def set_policy(  # noqa: PLR0913 - each may be changed alone
    site: str,
    actor: Actor,
    *,
    now: datetime,
    policy: Policy | None = None,
    close_after: int | None = None,
    reports: int | None = None,
    reason: str = "",
) -> rulebook.Book:
    """Change what is given of a site; the rest stays.

    Raises:
        errors.BadInput: a number is out of its range, or the reason no short line.
    """
    given = {"policy": policy, "close_after": close_after, "reports": reports}
    wanted = {name: value for name, value in given.items() if value is not None}

    def change(book: rulebook.Book) -> rulebook.Book:
        return msgspec.structs.replace(book, **wanted)

    def say(book: rulebook.Book) -> str:
        return f"{book.policy}, closed after {book.close_after} days, {book.reports} reports"

    return _changed(site, audit.Act(actor, "set-policy", reason), "site", change, say, now=now)


def put_rule(
    site: str, rule: rules.Rule, actor: Actor, *, now: datetime, reason: str = ""
) -> rulebook.Book:
    """Add a rule, or replace the one of its id, in its place.

    Raises:
        errors.BadInput: naming what is wrong with it.
    """

    def change(book: rulebook.Book) -> rulebook.Book:
        known = [each.id for each in book.rules]
        put = [rule if each.id == rule.id else each for each in book.rules]
        return msgspec.structs.replace(book, rules=(*put, *(() if rule.id in known else (rule,))))

    act = audit.Act(actor, "put-rule", reason)
    return _changed(site, act, f"rule:{rule.id}", change, _action_of(rule.id), now=now)


def remove_rule(
    site: str, rule_id: str, actor: Actor, *, now: datetime, reason: str = ""
) -> rulebook.Book:
    """Remove a rule.

    Raises:
        errors.NotFound: the site has no such rule.
    """

    def change(book: rulebook.Book) -> rulebook.Book:
        left = tuple(each for each in book.rules if each.id != rule_id)
        if len(left) == len(book.rules):
            raise errors.NotFound("rule", rule_id)
        return msgspec.structs.replace(book, rules=left)

    act = audit.Act(actor, "remove-rule", reason)
    return _changed(site, act, f"rule:{rule_id}", change, _action_of(rule_id), now=now)


def set_adviser(
    site: str,
    name: str,
    change: Advised,
    actor: Actor,
    *,
    now: datetime,
    reason: str = "",
) -> rulebook.Book:
    """Change whom a site asks about its comments, by a function of the adviser of that name.

    The log says on which terms he is asked: neither where nor with which secret.
    """

    def changed(book: rulebook.Book) -> rulebook.Book:
        after = change(book.adviser(name))
        others = [each for each in book.advisers if each.name != name]
        advisers = others if after is None else [*others, after]
        return msgspec.structs.replace(
            book, advisers=tuple(sorted(advisers, key=lambda each: each.name))
        )

    act = audit.Act(actor, "set-adviser", reason)
    return _changed(site, act, f"adviser:{name}", changed, _terms_of(name), now=now)


def ban(  # noqa: PLR0913 - who bans whom, how, and until when
    site: str,
    author: str,
    actor: Actor,
    *,
    now: datetime,
    until: datetime | None = None,
    is_shadow: bool = False,
    reason: str = "",
) -> rulebook.Book:
    """Keep an author from writing on a site, until a moment or for good.

    He is the id behind his comments: a token's or an account's, so that nobody can ban another one
    by taking his name. What he wrote stays as it is.

    Raises:
        errors.BadInput: it names nobody, or a moment that is over; there are too many bans.
    """
    if not author or len(author) > _MOST_AUTHOR:
        raise errors.BadInput("author", "is the id of an author")
    if until is not None and until <= now:
        raise errors.BadInput("until", "is over")
    made = rulebook.Ban(author, until, is_shadow)

    def change(book: rulebook.Book) -> rulebook.Book:
        return msgspec.structs.replace(book, bans=(*_without(book, author), made))

    act = audit.Act(actor, "ban", reason)
    return _changed(site, act, f"author:{author}", change, _ban_of(author, now), now=now)


def unban(
    site: str, author: str, actor: Actor, *, now: datetime, reason: str = ""
) -> rulebook.Book:
    """Let an author write again.

    Raises:
        errors.NotFound: he is not banned.
    """

    def change(book: rulebook.Book) -> rulebook.Book:
        if book.ban_of(author, now) is None:
            raise errors.NotFound("ban", author)
        return msgspec.structs.replace(book, bans=_without(book, author))

    act = audit.Act(actor, "unban", reason)
    return _changed(site, act, f"author:{author}", change, _ban_of(author, now), now=now)


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
    """Lock a thread or open it, give it a policy of its own, or have it inherit its site's.

    Raises:
        errors.NotFound: nobody wrote there yet.
    """
    act = audit.Act(actor, "set-thread", reason)

    def body() -> records.Thread:
        row = datastore.get(models.thread_key(name))
        if row is None:
            raise errors.NotFound("thread", name.id)
        if datastore.may_have_run() and audit.is_done(act):
            return models.thread_record(row)
        before = _said_of(row)
        row.state = row.state if state is None else state.value
        row.policy = row.policy if policy is None else policy.value
        if inherits:
            row.policy = ""
        if (after := _said_of(row)) != before:
            subject = f"thread:{models.thread_key_name(name)}"
            note = audit.noted(act, name.site, subject, before=before, after=after, now=now)
            datastore.apply(datastore.Writes("policies", put=(row,)), note)
        return models.thread_record(row)

    return datastore.transaction(body, line=f"{name.site}/{name.id}")


def new_rule_id() -> str:
    """An id for a rule that was given none."""
    return secrets.token_hex(4)


def _changed(
    site: str,
    act: audit.Act,
    subject: str,
    change: Callable[[rulebook.Book], rulebook.Book],
    say: Callable[[rulebook.Book], str],
    *,
    now: datetime,
) -> rulebook.Book:
    if not site:
        raise errors.NotFound("site", site)

    def body() -> rulebook.Book:
        if datastore.may_have_run() and audit.is_done(act):
            return rulebook.read(site)
        before, book, writes = rulebook.changed(site, change, now=now)
        note = audit.noted(act, site, subject, before=say(before), after=say(book), now=now)
        datastore.apply(writes, note)
        return book

    book = datastore.transaction(body)
    rulebook.forget(site)
    return book


def _action_of(rule_id: str) -> Callable[[rulebook.Book], str]:
    def say(book: rulebook.Book) -> str:
        return next((each.action.value for each in book.rules if each.id == rule_id), "")

    return say


def _terms_of(name: str) -> Callable[[rulebook.Book], str]:
    def say(book: rulebook.Book) -> str:
        found = book.adviser(name)
        return "" if found is None else opinions.terms_in_words(found)

    return say


def _ban_of(author: str, now: datetime) -> Callable[[rulebook.Book], str]:
    def say(book: rulebook.Book) -> str:
        found = book.ban_of(author, now)
        if found is None:
            return ""
        kind = "shadow-banned" if found.is_shadow else "banned"
        return kind if found.until is None else f"{kind} until {found.until.isoformat()}"

    return say


def _without(book: rulebook.Book, author: str) -> tuple[rulebook.Ban, ...]:
    return tuple(each for each in book.bans if each.author != author)


def _said_of(row: models.Thread) -> str:
    return f"{row.state} {row.policy}".strip()
