"""List the commands of `flatthread ...`.

A command opens the store and reports what it did. A command exits with 0 only if everything was
done, with 1 if the input was refused, and with 2 for wrong usage.

The list contains each command's name and summary, so a command's module is imported only when that
command is used. Listing commands, completing names, refusing unknown commands and serving requests
import none of these modules. While a command's module is imported, the modules that it imports are
loaded lazily, on first use. Help texts and refused arguments therefore load neither the store nor
the rooms above it.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
import flask

from comments.cli import console

if TYPE_CHECKING:
    from comments.upkeep.backups import engine_files


class _LazyFinder(importlib.abc.MetaPathFinder):
    """Finds this program's modules, and delays their loading until an attribute is first used."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a lazy module, or None for modules of other programs."""
        if not fullname.startswith("comments."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = importlib.util.LazyLoader(spec.loader)
        return spec


class Deferred(click.Command):
    """A command whose module is imported when the command is used.

    `place` is "module.function": a module in `commands` and the function in it. The command gets
    the name of the function: `import` for "import_", and `site-key` for "site_key".
    """

    def __init__(self, place: str, summary: str) -> None:
        self.module, _, self.function = place.partition(".")
        super().__init__(self.function.strip("_").replace("_", "-"), help=summary)

    def load(self) -> click.Command:
        """Import the command. The modules that it needs are loaded on first use."""
        finder = _LazyFinder()
        sys.meta_path.insert(0, finder)
        try:
            module = importlib.import_module(f"{__package__}.commands.{self.module}")
            command: click.Command = getattr(module, self.function)
        finally:
            sys.meta_path.remove(finder)
        if isinstance(command, click.Group):
            command.help = self.help
        return command

    def make_context(
        self, info_name: str | None, args: list[str], *rest: Any, **extra: Any
    ) -> click.Context:
        """Let the command itself parse the arguments, so that click then runs this command."""
        return self.load().make_context(info_name, args, *rest, **extra)


_SUMMARIES = {
    "doctor_commands.doctor": (
        "Check the service: settings, store, disk, mail, clock, address and more."
    ),
    "site_commands.site": "Add, list, change and delete websites.",
    "thread_commands.thread": "List, show, change, move and rebuild threads.",
    "import_commands.import_": (
        "Import the comments in a file that another system, or Flatthread, exported."
    ),
    "verify_commands.verify": "Compare an export with the comments that were imported from it.",
    "backup_commands.backup": "Make a backup of the store while the service runs.",
    "backup_commands.restore": "Replace the store by a backup.",
    "upgrade_commands.upgrade": "Upgrade the store to this release, after a backup.",
    "import_journal_commands.imports": "List, show and undo imports.",
    "export_commands.export": (
        "Export a website: settings, threads, comments and votes as of one moment."
    ),
    "repair_commands.repair": (
        "Check every comment, its place, its pages and its thread's counters."
    ),
    "repair_commands.recount": "Recount what each counter counts, and correct the differences.",
    "compaction_commands.compact": "Compact changed comments into the buckets that readers get.",
    "author_commands.author": "Export or erase an author's data.",
    "author_commands.forget": (
        "Erase a mail address: its subscriptions, and its id in all follower lists."
    ),
    "account_commands.account": "Manage accounts of owners and moderators.",
    "site_key_commands.site_key": "Manage the keys with which a site signs its readers' tokens.",
    "secret_commands.secret": "Manage the secret for signatures and encryption.",
    "provider_commands.provider": "Manage OpenID Connect providers for signing in.",
    "classifier_commands.classifier": "Manage the services that classify a site's comments.",
    "post_limit_commands.post_limits": "Show and set a website's limits for posts.",
    "budget_commands.budget": "Show and set a website's daily budget.",
    "notification_commands.notification": (
        "Show and set who gets mail about a website's comments, and test mail."
    ),
    "webhook_commands.webhook": "Manage webhooks, which notify a site's owner about comments.",
    "webhook_commands.delivery": "Show pending deliveries; retry or discard dead letters.",
    "statistics_commands.stats": "Show numbers of comments and distinct commenters.",
    "counter_commands.counter": "Declare counters of comments, and show their numbers.",
    "moderation_commands.rule": "Add, list, remove and test moderation rules.",
    "moderation_commands.moderate": "Moderate comments, authors and threads.",
}
COMMANDS = [Deferred(place, summary) for place, summary in _SUMMARIES.items()]


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
