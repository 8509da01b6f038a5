"""Show and set who of a site's staff gets mail about its comments: `notification`."""

import click

from comments import errors
from comments.accounts import accounts
from comments.cli import console
from comments.cli.commands import moderation_commands
from comments.domain import outcomes
from comments.domain.moderation import roles, staff_notices
from comments.events import audit_log
from comments.notifications.staff import staff_mail
from comments.sites import notice_recipients

notification = console.Group("notification")
_CHOICES = click.Choice(["each", "held", "daily", "none"])


@notification.command("list", console.SITE)
def _list(site_id: str) -> None:
    """List who gets mail, one per line: what they get, the hour of a digest, and who."""
    for recipient in console.site(site_id).recipients:
        is_daily = recipient.choice is staff_notices.NoticeChoice.DAILY
        hour = f"{recipient.hour:02}:00 {recipient.zone}" if is_daily else "-"
        click.echo(f"{recipient.choice}\t{hour}\t{_name(recipient.who)}")


def _name(who: str) -> str:
    account = None if "@" in who else accounts.get(who.removeprefix(accounts.AUTHOR))
    return who if account is None else account.login or account.name


@notification.command("set", console.SITE)
@click.argument("who", metavar="NAME|ADDRESS")
@click.argument("choice", type=_CHOICES)
@click.option(
    "--hour",
    type=int,
    default=staff_notices.FIRST_HOUR,
    show_default=True,
    help="Hour of the daily digest.",
)
@click.option(
    "--zone", default=staff_notices.NO_ZONE, show_default=True,
    help="Time zone of the hour, such as Europe/Berlin.",
)  # fmt: skip
def _set(site_id: str, who: str, choice: str, hour: int, zone: str) -> None:
    """Set what an account, by its sign-in name, or another address gets mail about.

    `each` is every new comment, `held` only comments that wait for approval, `daily` a digest of
    the new comments, and `none` nothing.
    """
    noted = audit_log.Noted(audit_log.Act(moderation_commands.ACTOR, "set-site"), console.now())
    wanted = staff_notices.NoticeChoice(choice)
    recipient = _recipient(site_id, who)
    notice_recipients.choose(site_id, recipient, wanted, hour=hour, zone=zone, noted=noted)
    click.echo(f"{who} gets {choice} on {site_id}. {console.applies()}")


def _recipient(site: str, who: str) -> str:
    """Return the author id of the account with this name or address, or else the address.

    Raises:
        click.ClickException: the account has no role on the site, or no address.
    """
    try:
        account = accounts.by_text(who, console.settings().secret)
    except errors.NotFound:
        if "@" in who:
            return who
        raise
    if not account.may(roles.Right.MODERATE, site):
        if "@" in who:
            return who
        raise click.ClickException(f"{who} has no role on {site}.")
    if not account.address:
        raise click.ClickException(f"{who} has no address. Name an address instead.")
    return account.author


@notification.command("test", console.SITE)
@click.argument("address")
def _test(site_id: str, address: str) -> None:
    """Send a test mail to ADDRESS, and print what the mail server answered."""
    site, now = console.site(site_id), console.now()
    outcome = staff_mail.send_test(console.settings(), site, address, now=now)
    click.echo(outcome.reason)
    if outcome.end is not outcomes.End.DELIVERED:
        raise click.exceptions.Exit(1)
