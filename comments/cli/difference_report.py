"""Report what a check found: a line for each kind of difference, all differences, or JSON.

Changing many rows outside the service causes thousands of differences of a few kinds. The summary
shows each kind with its number and its first difference.
"""

from typing import Any

import click
import msgspec

from comments.domain.text import shown_values
from comments.domain.text.shown_values import quantity

verbose = click.option("--verbose", is_flag=True, help="Show each one, not only each kind.")
as_json = click.option("--json", "is_json", is_flag=True, help="Print JSON.")


class FoundDifference(msgspec.Struct, frozen=True):
    """One difference. `place` names its place, outermost part first."""

    kind: str
    place: dict[str, str]
    stored: object
    expected: object

    @property
    def line(self) -> str:
        """Describe the difference in one line."""
        where = " ".join(part for part in self.place.values() if part)
        return f"{where}: {shown_values.difference(self.kind, self.stored, self.expected)}"


class DifferenceReport:
    """The differences that a command finds, printed while or after it runs."""

    def __init__(self, *, noun: str, verbose: bool, is_json: bool) -> None:
        self._noun = noun
        self._verbose = verbose
        self._is_json = is_json
        self._counts: dict[str, int] = {}
        self._examples: dict[str, FoundDifference] = {}
        self._all: list[FoundDifference] = []
        self.left = 0

    def add(self, found: FoundDifference, *, is_left: bool = False) -> None:
        """Add a difference. `is_left` marks a difference that nothing can correct."""
        self._counts[found.kind] = self._counts.get(found.kind, 0) + 1
        self._examples.setdefault(found.kind, found)
        self.left += is_left
        if self._verbose and self._is_json:
            self._all.append(found)
        elif self._verbose:
            click.echo(found.line)

    @property
    def total(self) -> int:
        """Return the number of differences."""
        return sum(self._counts.values())

    def end(self, done: str) -> None:
        """Print the summary. `done` says what happened to the differences, such as "repaired"."""
        if self._is_json:
            click.echo(msgspec.json.format(msgspec.json.encode(self._document(done))).decode())
            return
        for kind, count in {} if self._verbose else self._counts.items():
            click.echo(f"{kind}: {count}, for example {self._examples[kind].line}")
        click.echo(f"{quantity(self.total - self.left, self._noun)} {done}.")
        if self.left:
            click.echo(f"{quantity(self.left, self._noun)} cannot be repaired.")

    def _document(self, done: str) -> dict[str, Any]:
        kinds = [
            {"kind": kind, "count": count, "example": _plain(self._examples[kind])}
            for kind, count in self._counts.items()
        ]
        made: dict[str, Any] = {done: self.total - self.left, "left": self.left, "kinds": kinds}
        return made | ({"all": list(map(_plain, self._all))} if self._verbose else {})


def _plain(found: FoundDifference) -> dict[str, Any]:
    """Convert a difference for JSON. Values that JSON cannot represent become text."""
    return {
        "kind": found.kind,
        **found.place,
        "stored": _json(found.stored),
        "expected": _json(found.expected),
    }


def _json(value: object) -> object:
    return msgspec.to_builtins(value, enc_hook=repr, builtin_types=())
