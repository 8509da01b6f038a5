"""List the commands of `flask --app main ...` and their former names.

A command opens the store and reports what it did. A command exits with 0 only if everything was
done, with 1 if the input was refused, and with 2 for wrong usage. The serving process imports these
modules without running a command, so a module that only one command needs is imported inside that
command's function.
"""

import copy

import click
import flask

from comments.cli import (
    account_commands,
    author_commands,
    budget_commands,
    classifier_commands,
    compaction_commands,
    import_commands,
    moderation_commands,
    post_limit_commands,
    provider_commands,
    repair_commands,
    secret_commands,
    site_commands,
    site_key_commands,
    statistics_commands,
    thread_commands,
    webhook_commands,
)

COMMANDS = (
    site_commands.site,
    thread_commands.thread,
    import_commands.import_,
    repair_commands.repair,
    repair_commands.recount,
    compaction_commands.compact,
    author_commands.author,
    author_commands.forget,
    account_commands.account,
    site_key_commands.site_key,
    secret_commands.secret,
    provider_commands.provider,
    classifier_commands.classifier,
    post_limit_commands.post_limits,
    budget_commands.budget,
    webhook_commands.webhook,
    webhook_commands.delivery,
    statistics_commands.stats,
    moderation_commands.rule,
    moderation_commands.moderate,
)
# Former names of commands. They work until 1.0.
OLD_NAMES = {
    "adviser": classifier_commands.classifier,
    "fold": compaction_commands.compact,
    "guard": post_limit_commands.post_limits,
    "hook": webhook_commands.webhook,
    "key": site_key_commands.site_key,
}


def register(app: flask.Flask) -> None:
    """Add the commands to an application made by `app.create_app`."""
    for command in COMMANDS:
        app.cli.add_command(command)
    for name, command in OLD_NAMES.items():
        app.cli.add_command(_under(name, command))


def _under(name: str, command: click.Command) -> click.Command:
    """Copy a command under a former name: hidden, and with a warning when the copy runs."""
    old = copy.copy(command)
    old.name, old.hidden = name, True
    old.deprecated = f"Use `{command.name}` instead."
    return old
