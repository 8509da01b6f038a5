"""The commands about what is held of a person: `author export|erase`, and `forget`.

Owns how an operator names somebody: by his account (name, mail address or id), by an author's id,
or by any comment of his, which is what people who ask about their data can point at.
"""

from datetime import UTC, datetime

import click
import msgspec
from flask.cli import AppGroup, with_appcontext

from comments import errors
from comments.cli import console
from comments.store.models import comment_rows

author = AppGroup("author", help="What is held of somebody who wrote.")


@author.command("export")
@click.argument("who", metavar="WHO")
@console.reported
def _export(who: str) -> None:
    """Show all that is held of an author, as JSON.

    WHO is a comment of his, an author's id, or the name, mail address or id of an account.
    """
    from comments.jobs import personal_data

    secret, now = console.settings().secret, datetime.now(UTC)
    found = personal_data.export(_named(who), secret=secret, now=now)
    click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())


@author.command("erase")
@click.argument("who", metavar="WHO")
@click.option("--yes", is_flag=True, help="Do not ask.")
@console.reported
def _erase(who: str, *, yes: bool) -> None:
    """Erase an author: texts, names, votes, subscriptions, account. Threads stay whole.

    WHO is as for export. What is interrupted is taken up again by running it again.
    """
    from comments.jobs import personal_data

    found = _named(who)
    if not yes:
        click.confirm(f"Erase everything of {found} for good?", abort=True)
    comments = votes = 0
    while True:
        step = personal_data.erase(found, now=datetime.now(UTC))
        comments, votes = comments + step.comments, votes + step.votes
        if step.is_done:
            break
    click.echo(f"{comments} comments and {votes} votes erased.")


def _named(who: str) -> str:
    """The author's id.

    Raises:
        errors.NotFound: nobody is known by that.
    """
    from comments.accounts import accounts
    from comments.jobs import personal_data

    if who.startswith(("g:", accounts.AUTHOR)):
        return who
    try:
        return accounts.by_text(who, console.settings().secret).author
    except errors.NotFound:
        if not comment_rows.is_comment_id(who):
            raise
        return personal_data.author_of(who)


@click.command("forget")
@click.argument("address")
@with_appcontext
@console.reported
def forget(address: str) -> None:
    """Erase a mail address: what it is told of, and its id from every list of followers.

    What comments hold of their authors is not touched; it is erased when they are retracted.
    """
    from comments.accounts import accounts, identities
    from comments.notifications import double_opt_in

    ended = double_opt_in.forget(address, console.settings().secret, now=datetime.now(UTC))
    click.echo(f"{ended} subscriptions ended. Nothing is stored of what it was told of.")
    if accounts.by_identity(identities.of_address(address), console.settings().secret) is not None:
        click.echo(f"An account signs in with it: `author erase {address}` erases that.")
