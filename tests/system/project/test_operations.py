"""The table of operations names every command and every form of the console."""

import re
import sys
from collections.abc import Iterator

import click
import flask

from comments.cli import command_table
from comments.domain.moderation import operation_table
from tests.support import programs

ROWS = [row for rows in operation_table.sections().values() for row in rows]
ARGUMENT = re.compile("<(?:[a-z]+:)?([a-z]+)(?:_id)?>")
OTHER_COMMANDS = {"serve"}  # flatthread.command_line adds it to the commands of `comments.cli`.


def leaf_commands(command: click.Command, name: str) -> Iterator[str]:
    """Yield the names of a command's subcommands, or its own name if it has none."""
    loaded = command.load() if isinstance(command, command_table.Deferred) else command
    if not isinstance(loaded, click.Group):
        yield name
        return
    for part, inner in loaded.commands.items():
        yield from leaf_commands(inner, f"{name} {part}")


def console_routes(app: flask.Flask) -> set[str]:
    """Return the routes below /admin in the form of the table."""
    return {
        f"{method} {ARGUMENT.sub(lambda found: f'<{found[1]}>', rule.rule)}"
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) & {"GET", "POST"}
        if rule.rule.startswith("/admin")
    }


def full(route: str) -> str:
    method, path = route.split(" ")
    return f"{method} /admin/{path.replace('SITE', 'sites/<site>')}".removesuffix("/")


def test_every_command_is_in_one_row() -> None:
    known = [
        name for each in command_table.COMMANDS for name in leaf_commands(each, str(each.name))
    ]
    listed = [command for row in ROWS if row.commands for command in row.commands.split(", ")]
    assert sorted(listed) == sorted({*known, *OTHER_COMMANDS})


def test_every_form_of_the_console_is_in_one_row(app: flask.Flask) -> None:
    known = console_routes(app)
    listed = [full(route) for row in ROWS if row.routes for route in row.routes.split(", ")]
    assert set(listed) <= known
    forms = [route for route in listed if route.startswith("POST")]
    assert sorted(forms) == sorted(route for route in known if route.startswith("POST"))


def test_an_operation_without_a_command_or_a_page_says_why() -> None:
    wrong = [row.name for row in ROWS if bool(row.commands and row.routes) == bool(row.reason)]
    assert wrong == []


def test_the_page_of_the_operations_matches_the_table() -> None:
    drawn = programs.run([sys.executable, "scripts/operations.py", "--check"], cwd=programs.ROOT)
    assert drawn.returncode == 0, drawn.stdout
