"""Commands for the external services that classify a site's comments: `classifier`.

A generated secret is shown once, by the command that creates it. A secret that the operator types
is never shown.
"""

from collections.abc import Callable
from typing import Any

import click

from comments.cli import console
from comments.domain import records
from comments.domain.moderation import classifier_verdicts
from comments.events import safe_http
from comments.moderation.classifiers import classifier_requests, registration

classifier = console.Group("classifier")
_ACTOR = records.Actor("cli", "the command line")

_TERMS = (
    click.option(
        "--first/--while-shown", "holds", default=True, show_default=True,
        help="Ask before a comment is shown, or while it is shown.",
    ),
    click.option(
        "--then", type=click.Choice(("hold", "show")), default="hold", show_default=True,
        help="What to do with a pending comment if the service cannot be reached.",
    ),
    click.option(
        "--everybody/--guests", default=None,
        help="Ask about everybody's comments, or only about guests' comments.",
    ),
)  # fmt: skip


def _with_terms(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_TERMS):
        command = option(command)
    return command


def _by() -> "registration.By":

    return registration.By(_ACTOR, console.now(), console.settings())


def _client() -> "safe_http.HttpClient":

    return classifier_requests.OUTBOUND.get()


@classifier.command("show", console.SITE)
def _show(site_id: str) -> None:
    """List a site's classifiers, one per line: name, address, terms."""
    for entry in registration.every(site_id):
        click.echo(f"{entry.name}\t{entry.url}\t{classifier_verdicts.terms_in_words(entry)}")


@classifier.command("webhook", console.SITE)
@click.argument("url", metavar="URL")
@_with_terms
def _webhook(site_id: str, url: str, *, holds: bool, then: str, everybody: bool | None) -> None:
    """Register the site's own service, and show its secret once.

    By default, the service is asked about comments by everyone.
    """
    whom = True if everybody is None else everybody
    terms = registration.Terms(holds, then == "show", whom)
    made = registration.set_webhook(site_id, url, terms, _by(), _client())
    click.echo(f"{site_id} now asks {url}. {console.applies()}")
    if made:
        click.echo(f"Secret (shown only once): {made}")


@classifier.command("akismet", console.SITE)
@click.option(
    "--key",
    default="",
    show_default=False,
    hide_input=True,
    prompt="API key (leave empty to keep the stored key)",
    help="The API key. It is safer to type it at the prompt.",
)
@click.option("--url", default="", help="Address of a different service with Akismet's protocol.")
@_with_terms
def _akismet(
    site_id: str, *, key: str, url: str, holds: bool, then: str, everybody: bool | None
) -> None:
    """Register Akismet. By default, Akismet is asked only about comments by guests."""
    terms = registration.Terms(holds, then == "show", bool(everybody))
    registration.set_akismet(site_id, key, terms, _by(), _client(), url=url)
    click.echo(f"{site_id} now asks Akismet. {console.applies()}")


@classifier.command("rotate", console.SITE)
@click.option("--leaked", is_flag=True, help="Stop accepting the old secret.")
def _rotate(site_id: str, *, leaked: bool) -> None:
    """Create a new secret for the site's own service, and show it once.

    The old secret stays valid until the next rotation, unless --leaked is given.
    """
    made = registration.rotate(site_id, _by(), keeps_old=not leaked)
    click.echo(f"New secret (shown only once): {made}")


@classifier.command("remove", console.SITE)
@click.argument("name", type=click.Choice(classifier_verdicts.NAMES))
def _remove(site_id: str, name: str) -> None:
    """Remove a classifier. The classifier's pending comments are left to moderators."""
    registration.remove(site_id, name, _by())
    click.echo(f"{site_id} no longer asks {classifier_verdicts.LABELS[name]}. {console.applies()}")
