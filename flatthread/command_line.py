"""The commands by name: `serve`, which starts gunicorn, and those of `comments.cli`."""

import socket

import click
import flask
import flask.cli

import flatthread
from comments.cli import command_table


@click.command()
@click.option(
    "--host",
    envvar="HOST",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on.",
)
@click.option(
    "--port",
    envvar="PORT",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="The port to listen on; 0 picks a free one.",
)
def serve(host: str, port: int) -> None:
    """Serve comments until SIGTERM or SIGINT.

    The first start creates the data folder: ./data, or the setting FLATTHREAD_DATA. Once the
    service answers, it prints its URL, the only line on standard output.
    """
    address, family = f"{host}:{port}", socket.AF_INET
    if ":" in host:
        address, family = f"[{host}]:{port}", socket.AF_INET6
    try:
        # gunicorn itself would try for five seconds if the port were taken.
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        reason = str(error.strerror).partition(" (")[0]  # Drop the address, which Socket adds
        raise click.ClickException(
            f"Cannot listen on {address}: {reason}. Choose another with --host and --port."
        ) from error
    from flatthread import service

    service.run(address)


@click.group(name="flatthread", commands=[serve, *command_table.COMMANDS])
@click.version_option(flatthread.__version__, message="%(prog)s %(version)s")
def group() -> None:
    """Serve the comments of websites, and manage them."""


def run() -> None:
    """Run the command that the arguments name."""
    group.main(prog_name="flatthread", obj=flask.cli.ScriptInfo(create_app=_app))


def _app() -> flask.Flask:
    import main

    return main.commands_app()
