"""List the commands of `flask --app main ...`.

A command opens the store and reports what it did. A command exits with 0 only if everything was
done, with 1 if the input was refused, and with 2 for wrong usage.

The list contains each command's name and summary, so its module is imported only when the command
is used: lists of commands, completion and unknown commands need none, and neither does a serving
process. A command's module imports the store and all rooms above it inside the command's function,
so help texts and refused arguments do without these.
"""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
import flask

from comments.cli import console

if TYPE_CHECKING:
    from comments.jobs.backups import engine_files


class Deferred(click.Command):
    """A command whose module is imported when the command is used.

    `place` is the name of a module of this package and of the command in it.
    """

    def __init__(self, name: str, place: str, summary: str) -> None:
        super().__init__(name, help=summary)
        self.place = place

    def load(self) -> click.Command:
        """Import the command."""
        module, _, name = self.place.partition(".")
        found: click.Command = getattr(importlib.import_module(f"{__package__}.{module}"), name)
        return found

    def make_context(
        self, info_name: str | None, args: list[str], *rest: Any, **extra: Any
    ) -> click.Context:
        """Parse the arguments as the command itself, which click then runs."""
        return self.load().make_context(info_name, args, *rest, **extra)


COMMANDS = (
    Deferred(
        "site",
        "site_commands.site",
        "Add, list and change websites.",
    ),
    Deferred(
        "thread",
        "thread_commands.thread",
        "List, show, change and rebuild threads.",
    ),
    Deferred(
        "import",
        "import_commands.import_",
        "Import the comments in a file that another system, or Flatthread, exported.",
    ),
    Deferred(
        "verify",
        "verify_commands.verify",
        "Compare an export with the comments that were imported from it.",
    ),
    Deferred(
        "backup",
        "backup_commands.backup",
        "Make a backup of the store while the service runs.",
    ),
    Deferred(
        "restore",
        "backup_commands.restore",
        "Replace the store by a backup.",
    ),
    Deferred(
        "imports",
        "import_journal_commands.imports",
        "List, show and undo imports.",
    ),
    Deferred(
        "export",
        "export_commands.export",
        "Export a website: settings, threads, comments and votes as of one moment.",
    ),
    Deferred(
        "repair",
        "repair_commands.repair",
        "Check every comment, its place, its pages and its thread's counters.",
    ),
    Deferred(
        "recount",
        "repair_commands.recount",
        "Recount what each counter counts, and correct the differences.",
    ),
    Deferred(
        "compact",
        "compaction_commands.compact",
        "Compact changed comments into the buckets that readers get.",
    ),
    Deferred(
        "author",
        "author_commands.author",
        "Export or erase an author's data.",
    ),
    Deferred(
        "forget",
        "author_commands.forget",
        "Erase a mail address: its subscriptions, and its id in all follower lists.",
    ),
    Deferred(
        "account",
        "account_commands.account",
        "Manage accounts of owners and moderators.",
    ),
    Deferred(
        "site-key",
        "site_key_commands.site_key",
        "Manage the keys with which a site signs its readers' tokens.",
    ),
    Deferred(
        "secret",
        "secret_commands.secret",
        "Manage the secret for signatures and encryption.",
    ),
    Deferred(
        "provider",
        "provider_commands.provider",
        "Manage OpenID Connect providers for signing in.",
    ),
    Deferred(
        "classifier",
        "classifier_commands.classifier",
        "Manage the services that classify a site's comments.",
    ),
    Deferred(
        "post-limits",
        "post_limit_commands.post_limits",
        "Show and set a website's limits for posts.",
    ),
    Deferred(
        "budget",
        "budget_commands.budget",
        "Show and set a website's daily budget.",
    ),
    Deferred(
        "webhook",
        "webhook_commands.webhook",
        "Manage webhooks, which notify a site's owner about comments.",
    ),
    Deferred(
        "delivery",
        "webhook_commands.delivery",
        "Show pending deliveries; retry or discard dead letters.",
    ),
    Deferred(
        "stats",
        "statistics_commands.stats",
        "Show numbers of comments and distinct commenters.",
    ),
    Deferred(
        "counter",
        "counter_commands.counter",
        "Declare counters of comments, and show their numbers.",
    ),
    Deferred(
        "rule",
        "moderation_commands.rule",
        "Add, list, remove and test moderation rules.",
    ),
    Deferred(
        "moderate",
        "moderation_commands.moderate",
        "Moderate comments, authors and threads.",
    ),
)


def create_app(
    open_store: console.Opener, data_files: "Callable[[], engine_files.EngineFiles]"
) -> flask.Flask:
    """Make an application that has only commands. A command opens the store when it runs."""
    app = flask.Flask("comments", static_folder=None, template_folder="web/templates")
    console.open_later(app, open_store, data_files)
    register(app)
    return app


def register(app: flask.Flask) -> None:
    """Add the commands to an application."""
    for command in COMMANDS:
        app.cli.add_command(command)
