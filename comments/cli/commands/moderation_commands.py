"""Moderate comments, authors and threads: `rule` and `moderate`.

An operator who can run commands has all permissions. In the audit log, the actor is "the command
line".
"""

import functools
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TextIO

import click

from comments import errors
from comments.cli import console
from comments.cli.commands import bulk_commands
from comments.domain import records
from comments.domain.text import sanitizing
from comments.domain.text.shown_values import quantity
from comments.events import audit_log
from comments.moderation import bans, decisions, review_queue
from comments.moderation.policy import author_links, dry_run, policy_changes, rulebook, rules
from comments.store.models import comment_rows

ACTOR = bulk_commands.ACTOR
_ACTIONS = ("hold", "spam", "shadow", "reject")
_POLICIES = [policy.value for policy in records.Policy]
_SHOWN = 60  # Maximum number of characters of a text that a list shows.
_LONGEST_BAN = 36_500  # In days; for a longer ban, omit --days.

rule = console.Group("rule")
_AUTHOR = click.argument("author", metavar="AUTHOR")
moderate = console.Group("moderate")

_reason = click.option("--reason", default="", help="Reason, for the audit log.")
_CONDITIONS = (
    click.option("--word", "words", multiple=True, help="Word in the text; spam* fits spammer."),
    click.option("--name", "names", multiple=True, help="Word in the author's name."),
    click.option("--website", "websites", multiple=True, help="Host of the author's website."),
    click.option("--host", "hosts", multiple=True, help="Host of a link; includes subdomains."),
    click.option("--links", type=int, help="The text has more links than this."),
    click.option("--script", "scripts", multiple=True, help="Script: cyrillic, han, latin, ..."),
    click.option("--network", "networks", multiple=True, help="Network, e.g. 203.0.113.0/24."),
    click.option("--approved-under", type=int, help="The author has fewer approved comments."),
    click.option("--repeated", type=int, help="The text was posted more often within a day."),
    click.option("--younger-than", type=int, help="The author's first visit is fewer days ago."),
)


def _conditions(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_CONDITIONS):
        command = option(command)
    return command


def _rule(rule_id: str, action: str, conditions: dict[str, Any]) -> "rules.Rule":

    made = rules.Rule(id=rule_id, action=rules.Action(action), **conditions)
    rules.check_hosts(made)
    return made


@rule.command("add", console.SITE)
@click.option(
    "--id", "rule_id", default="", help="Id of the rule. An existing rule with this id is replaced."
)
@click.option("--action", type=click.Choice(_ACTIONS), default="hold", show_default=True)
@_conditions
@click.option("--off", "is_off", is_flag=True, help="Store the rule, but disabled.")
@_reason
def _add(
    site_id: str, rule_id: str, action: str, *, is_off: bool, reason: str, **conditions: Any
) -> None:
    """Add a rule. The rule matches when at least one condition of each type matches."""
    name = rule_id or policy_changes.new_rule_id()
    made = _rule(name, action, {**conditions, "is_on": not is_off})
    site = console.site(site_id).id
    policy_changes.put_rule(site, made, ACTOR, now=console.now(), reason=reason)
    click.echo(f"Saved rule {name} of {site}. {console.applies()}")


@rule.command("list", console.SITE)
def _list(site_id: str) -> None:
    """List a site's rules, one per line: id, action, conditions."""
    import msgspec

    for entry in rulebook.from_store(console.site(site_id).id).rules:
        fields = msgspec.to_builtins(entry)
        head = f"{fields.pop('id')}\t{fields.pop('action')}"
        state = "" if fields.pop("is_on", True) else "\toff"
        click.echo(f"{head}{state}\t{msgspec.json.encode(fields).decode()}")


@rule.command("remove", console.SITE)
@click.argument("rule_id", metavar="RULE")
@_reason
def _remove(site_id: str, rule_id: str, reason: str) -> None:
    """Remove a rule. Comments keep the status that the rule gave them."""
    site = console.site(site_id).id
    policy_changes.remove_rule(site, rule_id, ACTOR, now=console.now(), reason=reason)
    click.echo(f"Removed rule {rule_id} of {site}.")


@rule.command("test", console.SITE)
@click.argument("rule_id", metavar="[RULE]", required=False)
@click.option("--action", type=click.Choice(_ACTIONS), default="hold", show_default=True)
@_conditions
@click.option("--last", type=int, default=1_000, show_default=True, help="Number of comments.")
def _test(site_id: str, rule_id: str | None, *, action: str, last: int, **conditions: Any) -> None:
    """Show what a rule would do to the last comments, without changing anything.

    RULE is the id of one of the site's rules. If RULE is omitted, the options describe the rule; if
    both are omitted, all rules of the site are tested.
    """
    site = console.site(site_id).id
    tried = [entry for entry in rulebook.from_store(site).rules if rule_id in {None, entry.id}]
    if any(value is not None and value != () for value in conditions.values()):
        tried = [_rule("tried", action, conditions)]
    if not tried:
        raise errors.NotFound("rule", rule_id or "of this site")
    report = dry_run.try_rules(site, tried, last=last)
    for match in report.matches:
        ruling = match.ruling
        click.echo(f"{match.comment.id}\t{ruling.status}\t{ruling.rule}\t{ruling.why}")
    examined = quantity(report.looked_at, "comment")
    click.echo(f"Matched {len(report.matches)} of {examined}. No changes made.")


for _command in bulk_commands.bulk.commands.values():
    moderate.add_command(_command)


@moderate.command("queue", console.SITE)
@bulk_commands.filters
@click.option("--limit", type=int, default=50, show_default=True)
def _queue(site_id: str, limit: int, **options: Any) -> None:
    """List comments by status, newest first: id, time, author, rule and reason, first words."""
    wanted = bulk_commands.queue_filter(site_id, options)
    page = review_queue.page(wanted, limit=limit, secret=console.settings().secret)
    for case in page.cases:
        comment = case.comment
        # Take the words from the rendered HTML, because an imported comment's source is HTML too.
        begins = " ".join(sanitizing.plain_text(comment.html).split())[:_SHOWN]
        moment = comment.created.isoformat(timespec="seconds")
        why = f"{case.rule}: {case.why}" if case.rule else ""
        click.echo(f"{comment.id}\t{moment}\t{comment.author.name}\t{why}\t{begins}")
    shown = quantity(len(page.cases), "comment")
    click.echo(f"{shown}{', and there are more' if page.cursor else ''}.")


_HELP = {records.Verb.SPAM: "Mark comments as spam, by id."}


def _verb(verb: records.Verb) -> None:
    """Add the command for a verb."""
    summary = _HELP.get(verb, f"{verb.value.capitalize()} comments, by id.")

    @moderate.command(verb.value, console.SITE, summary=summary)
    @click.argument("ids", metavar="COMMENT...", nargs=-1, required=True)
    @_reason
    def _decide(site_id: str, ids: tuple[str, ...], reason: str) -> None:
        site, now = console.site(site_id).id, console.now()
        _report_outcomes(decisions.decide_many(site, ids, verb, ACTOR, now=now, reason=reason))


for _each in records.Verb:
    _verb(_each)


@moderate.command("edit", console.SITE)
@click.argument("comment_id", metavar="COMMENT")
@click.argument("file", type=click.File(encoding="utf-8"))
@_reason
def _edit(site_id: str, comment_id: str, file: TextIO, reason: str) -> None:
    """Replace a comment's text with the text in FILE; "-" reads standard input.

    Readers see that a moderator edited the comment.
    """
    site, now = console.site(site_id).id, console.now()
    decisions.rewrite(site, comment_id, file.read(), ACTOR, now=now, reason=reason)
    click.echo(f"Saved the text of {comment_id}.")


@moderate.command("ban", console.SITE, _AUTHOR)
@click.option("--days", type=click.IntRange(1, _LONGEST_BAN), help="Default: permanently.")
@click.option("--shadow", "is_shadow", is_flag=True, help="New comments: visible to author only.")
@click.option("--hide", "hides", is_flag=True, help="Also hide the author's existing comments.")
@click.option(
    "--network-days", type=click.IntRange(1, 365),
    help="Also ban the comment's network for this many days. Other people may share it.",
)  # fmt: skip
@click.option("--mailbox", is_flag=True, help="Also ban the mail address, with and without +tag.")
@_reason
def _ban(
    site_id: str,
    author: str,
    days: int | None,
    *,
    is_shadow: bool,
    hides: bool,
    network_days: int | None,
    mailbox: bool,
    reason: str,
) -> None:
    """Ban an author. AUTHOR is an author id or the id of one of the author's comments.

    Guests who clear their browser's data get a new id; --network-days and --mailbox recognize them
    anyway.
    """
    site, now = console.site(site_id).id, console.now()
    who = decisions.author_id(site, author)
    until = None if days is None else now + timedelta(days=days)
    wanted = bans.BanScope(
        network_days, mailbox, author if comment_rows.is_comment_id(author) else ""
    )
    bans.ban(
        site, who, wanted, ACTOR, secret=console.settings().secret, now=now, until=until,
        is_shadow=is_shadow, reason=reason,
    )  # fmt: skip
    click.echo(f"Banned {who}. {console.applies()}")
    hide = functools.partial(decisions.decide_all, site, who, records.Verb.HIDE, ACTOR, now=now)
    while hides and (done := hide(reason=reason)):
        _report_outcomes(done)


@moderate.command("unban", console.SITE, _AUTHOR)
@click.option("--restore", "restores", is_flag=True, help="Restore the author's hidden comments.")
@_reason
def _unban(site_id: str, author: str, *, restores: bool, reason: str) -> None:
    """Remove a ban. AUTHOR is an author id or the id of one of the author's comments."""
    site, now = console.site(site_id).id, console.now()
    who = decisions.author_id(site, author)
    policy_changes.unban(site, who, ACTOR, now=now, reason=reason)
    click.echo(f"Removed the ban of {who}.")
    restore = functools.partial(decisions.decide_all, site, who, records.Verb.RESTORE, ACTOR)
    while restores and (done := restore(now=now, reason=reason)):
        _report_outcomes(done)


@moderate.command("links", console.SITE, _AUTHOR)
def _links(site_id: str, author: str) -> None:
    """List the author ids of a person: id, link, time.

    AUTHOR is an author id or the id of one of the author's comments.
    """
    site = console.site(site_id).id
    for link in author_links.of_people(site, [decisions.author_id(site, author)]):
        since = "" if link.since is None else link.since.isoformat(timespec="seconds")
        click.echo("\t".join((*link.authors, link.kind, since)))


@moderate.command("link", console.SITE, _AUTHOR)
@click.argument("other", metavar="OTHER")
@_reason
def _link(site_id: str, author: str, other: str, reason: str) -> None:
    """Record that two authors are one person: bans, records, exports and erasures cover both.

    AUTHOR and OTHER are author ids, or ids of the authors' comments. Readers get no rights.
    """
    _change_links(author_links.link, site_id, (author, other), reason)


@moderate.command("unlink", console.SITE, _AUTHOR)
@click.argument("other", metavar="OTHER")
@_reason
def _unlink(site_id: str, author: str, other: str, reason: str) -> None:
    """End a link. If it is a reader's claim, further claims of these comments are refused."""
    _change_links(author_links.unlink, site_id, (author, other), reason)


@moderate.command("allow-claims", console.SITE, _AUTHOR, _reason)
def _allow_claims(site_id: str, author: str, reason: str) -> None:
    """Let readers claim an imported author's comments again after a claim was ended."""
    site, now = console.site(site_id).id, console.now()
    who = decisions.author_id(site, author)
    author_links.allow_claims(site, who, ACTOR, now=now, reason=reason)
    click.echo(f"Readers may claim the comments of {who}.")


def _change_links(
    change: Callable[..., None], site_id: str, authors: tuple[str, str], reason: str
) -> None:
    site = console.site(site_id).id
    one, other = (decisions.author_id(site, author) for author in authors)
    change(site, one, other, ACTOR, now=console.now(), reason=reason)
    for who in author_links.person(site, one):
        click.echo(who)


@moderate.command("policy", console.SITE)
@click.option("--policy", type=click.Choice(_POLICIES))
@click.option("--close-after", type=int, help="Days until threads close; 0 means never.")
@click.option("--reports", type=int, help="Reports that hold a comment; 0 means never.")
@_reason
def _policy(
    site_id: str, policy: str | None, close_after: int | None, reports: int | None, reason: str
) -> None:
    """Show a site's policy and bans, or change the given values."""
    site = console.site(site_id).id
    book = rulebook.from_store(site)
    if (policy, close_after, reports) != (None, None, None):
        wanted = None if policy is None else records.Policy(policy)
        book = policy_changes.set_policy(
            site, ACTOR, now=console.now(), policy=wanted, close_after=close_after,
            reports=reports, reason=reason,
        )  # fmt: skip
    click.echo(f"policy\t{book.policy}\nclose-after\t{book.close_after}\nreports\t{book.reports}")
    for listed in bans.entries(book.bans):
        ban = listed.ban
        kind = "shadow-ban" if ban.is_shadow else "ban"
        until = ban.until.isoformat() if ban.until else "permanent"
        beside = ", ".join(bans.beside(ban))
        click.echo(f"{kind}\t{ban.author}\t{until}\t{beside}\t{listed.name}\t{listed.excerpt}")


@moderate.command("thread", console.SITE)
@click.argument("thread", metavar="THREAD")
@click.option("--lock/--open", "locks", default=None, help="Close or open it for new comments.")
@click.option("--policy", type=click.Choice([*_POLICIES, "inherit"]))
@_reason
def _thread(
    site_id: str,
    thread: str,
    locks: bool | None,  # noqa: FBT001 - click passes it by name
    policy: str | None,
    reason: str,
) -> None:
    """Lock or unlock a thread, or set the thread's own policy."""
    name = console.thread(site_id, thread)
    state = {True: records.ThreadState.CLOSED, False: records.ThreadState.OPEN, None: None}[locks]
    wanted = records.Policy(policy) if policy not in {None, "inherit"} else None
    changed_thread = policy_changes.set_thread(
        name, ACTOR, now=console.now(), state=state, policy=wanted,
        inherits=policy == "inherit", reason=reason,
    )  # fmt: skip
    click.echo(f"{changed_thread.state}, policy: {changed_thread.policy or 'inherited'}")


@moderate.command("log", console.SITE)
@click.option("--subject", default="", help="A comment id, thread:..., author:... or rule:...")
@click.option("--limit", type=int, default=50, show_default=True)
def _log(site_id: str, subject: str, limit: int) -> None:
    """Show the audit log, newest first: id, time, actor, verb, subject, before, after, reason."""
    for entry in audit_log.log(console.site(site_id).id, subject=subject, limit=limit):
        text = (
            entry.id, entry.at.isoformat(timespec="seconds"), entry.actor.name, entry.verb,
            entry.subject, entry.before, entry.after, entry.reason,
        )  # fmt: skip
        click.echo("\t".join(text))


@moderate.command("undo", console.SITE)
@click.argument("entry", metavar="ENTRY")
@_reason
def _undo(site_id: str, entry: str, reason: str) -> None:
    """Undo an entry of the audit log, unless a later change has replaced the entry's result.

    Entries about rules cannot be undone.
    """
    site, now = console.site(site_id).id, console.now()
    logged = audit_log.entry(site, entry)
    if comment_rows.is_comment_id(logged.subject):
        comment = decisions.undo(site, entry, ACTOR, now=now, reason=reason)
        click.echo(f"{comment.id}\t{comment.status}")
    else:
        policy_changes.undo(site, entry, ACTOR, now=now, reason=reason)
        click.echo(f"{logged.subject}\t{logged.before or '-'}")


def _report_outcomes(outcomes: list[Any]) -> None:
    """Show the result for each comment; exit with 1 if a comment was refused."""
    for outcome in outcomes:
        text = outcome.message if outcome.comment is None else outcome.comment.status
        click.echo(f"{outcome.id}\t{text}")
    if any(outcome.comment is None for outcome in outcomes):
        raise click.exceptions.Exit(1)
