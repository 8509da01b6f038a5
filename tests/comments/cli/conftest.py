"""Provide the fixture with which tests run commands."""

from pathlib import Path

import click.testing
import flask
import pytest


class Runner:
    """A runner that executes commands as `flatthread ...` does."""

    def __init__(self, app: flask.Flask) -> None:
        self._runner = app.test_cli_runner()

    def __call__(self, *arguments: str | Path) -> click.testing.Result:
        return self._runner.invoke(args=[str(argument) for argument in arguments])

    def answering(self, answer: str, *arguments: str) -> click.testing.Result:
        """Run a command, and type an answer to its question."""
        return self._runner.invoke(args=arguments, input=answer)


@pytest.fixture
def run(app: flask.Flask) -> Runner:
    return Runner(app)
