"""The commands about whom a site asks outside about its comments: `classifier`.

Owns what an operator types and reads of advisers. A secret that is made here is shown once, by the
command that made it; one that is typed is shown by none.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from flask.cli import AppGroup

from comments.cli import console
from comments.domain import classifier_verdicts, records

if TYPE_CHECKING:
    from comments.events import safe_http
    from comments.moderation.classifiers import registration

classifier = AppGroup("classifier", help="Services outside that are asked about a site's comments.")
_ACTOR = records.Actor("cli", "the command line")
_NOTICE = "Running processes notice within a minute."

_TERMS = (
    click.option(
        "--first/--while-shown", "holds", default=True, show_default=True,
        help="Whether a comment is shown when he says so, or until he says otherwise.",
    ),
    click.option(
        "--then", type=click.Choice(("hold", "show")), default="hold", show_default=True,
        help="What becomes of a comment that waits, if he cannot be asked.",
    ),
    click.option(
        "--everybody/--guests", default=None,
        help="Whose comments he is asked about.",
    ),
)  # fmt: skip


def _with_terms(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_TERMS):
        command = option(command)
    return command


def _by() -> "registration.By":
    from comments.moderation.classifiers import registration

    return registration.By(_ACTOR, datetime.now(UTC), console.settings())


def _client() -> "safe_http.Client":
    from comments.moderation.classifiers import classifier_requests

    return classifier_requests.OUTBOUND.get()


@classifier.command("show")
@click.argument("site_id", metavar="SITE")
@console.reported
def _show(site_id: str) -> None:
    """Show whom a site asks, one a line: name, address, terms."""
    from comments.moderation.classifiers import registration

    for each in registration.every(site_id):
        click.echo(f"{each.name}\t{each.url}\t{classifier_verdicts.terms_in_words(each)}")


@classifier.command("webhook")
@click.argument("site_id", metavar="SITE")
@click.argument("url", metavar="URL")
@_with_terms
@console.reported
def _webhook(site_id: str, url: str, *, holds: bool, then: str, everybody: bool | None) -> None:
    """Ask a service of the site's own; shows its secret, once. He is asked about everybody."""
    from comments.moderation.classifiers import registration

    whom = True if everybody is None else everybody
    terms = registration.Terms(holds, then == "show", whom)
    made = registration.set_webhook(site_id, url, terms, _by(), _client())
    click.echo(f"{site_id} asks {url}. {_NOTICE}")
    if made:
        click.echo(f"Its secret, shown this once: {made}")


@classifier.command("akismet")
@click.argument("site_id", metavar="SITE")
@click.option(
    "--key",
    default="",
    show_default=False,
    hide_input=True,
    prompt="The key (empty: the one there is)",
    help="Better typed where it is asked for.",
)
@click.option("--url", default="", help="A service that speaks as Akismet does.")
@_with_terms
@console.reported
def _akismet(
    site_id: str, *, key: str, url: str, holds: bool, then: str, everybody: bool | None
) -> None:
    """Ask Akismet whether comments are spam; about guests' comments only, unless --everybody."""
    from comments.moderation.classifiers import registration

    terms = registration.Terms(holds, then == "show", bool(everybody))
    registration.set_akismet(site_id, key, terms, _by(), _client(), url=url)
    click.echo(f"{site_id} asks Akismet. {_NOTICE}")


@classifier.command("rotate")
@click.argument("site_id", metavar="SITE")
@click.option("--leaked", is_flag=True, help="Do not take the old secret any more.")
@console.reported
def _rotate(site_id: str, *, leaked: bool) -> None:
    """Make a new secret for the site's own service, shown once. The old one is good beside it."""
    from comments.moderation.classifiers import registration

    made = registration.rotate(site_id, _by(), keeps_old=not leaked)
    click.echo(f"The new secret, shown this once: {made}")


@classifier.command("remove")
@click.argument("site_id", metavar="SITE")
@click.argument("name", type=click.Choice(classifier_verdicts.NAMES))
@console.reported
def _remove(site_id: str, name: str) -> None:
    """Ask a service no more. What waits for it is left to moderators."""
    from comments.moderation.classifiers import registration

    registration.remove(site_id, name, _by())
    click.echo(f"{site_id} asks {classifier_verdicts.LABELS[name]} no more. {_NOTICE}")
