"""Export and erase personal data: `author export|erase`, and `forget`.

An operator can name an author by account (name, mail address or id), by author id, or by any of the
author's comments, because people who ask about their data can usually name a comment.
"""

import click
import msgspec

from comments.accounts import accounts, identities
from comments.cli import console
from comments.domain.text.shown_values import quantity
from comments.notifications import double_opt_in, reader_follows
from comments.transfer import personal_data

author = console.Group("author")


@author.command("export")
@click.argument("who", metavar="WHO")
def _export(who: str) -> None:
    """Show all data about an author as JSON.

    WHO is the id of one of the author's comments, an author id, or an account's name, mail address
    or id.
    """
    secret, now = console.settings().secret, console.now()
    everything = personal_data.export(_author_id(who), secret=secret, now=now)
    click.echo(msgspec.json.format(msgspec.json.encode(everything), indent=2).decode())


@author.command("erase")
@click.argument("who", metavar="WHO")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def _erase(who: str, *, yes: bool) -> None:
    """Erase an author's texts, names, votes, subscriptions, followed threads and account.

    Threads stay intact.

    WHO has the same forms as for `author export`. If the command is interrupted, run it again.
    """
    author_id = _author_id(who)
    if not yes:
        click.confirm(f"Permanently erase all data of {author_id}?", abort=True)
    comments = votes = 0
    while True:
        step = personal_data.erase(author_id, now=console.now())
        comments, votes = comments + step.comments, votes + step.votes
        if step.is_done:
            break
    reader_follows.erase(author_id)
    erased = quantity(comments, "comment"), quantity(votes, "vote")
    click.echo(f"Erased {' and '.join(erased)}.")


def _author_id(who: str) -> str:
    return personal_data.find_author(who, secret=console.settings().secret)


@console.command("forget")
@click.argument("address")
def forget(address: str) -> None:
    """Erase a mail address: its subscriptions, and its id in all follower lists.

    The author data that comments store is not changed; retracting a comment erases that comment's
    author data.
    """
    ended = double_opt_in.forget(address, console.settings().secret, now=console.now())
    click.echo(f"Ended {quantity(ended, 'subscription')} and erased the address.")
    if accounts.by_identity(identities.of_address(address), console.settings().secret) is not None:
        click.echo(f"An account uses this address. To erase it, run `author erase {address}`.")
