"""The two forms of a materialized path, for docs/ideas/sets-and-trees.md, as raw messages.

    python -m tests.support.path_forms HOST:PORT [KIND ...]

asks an emulator of Datastore the questions of the page in each form, and prints whether the answers
are right. The tree has 1,110 nodes: ten at the top, and ten
below each node of the two upper levels.
"""

import itertools
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import grpc

from comments.domain import categories
from comments.store.wire import queries
from datastore_emulator import protobufs
from tests.support import raw_client

NAMES = [
    "/".join(parts)
    for depth in (1, 2, 3)
    for parts in itertools.product("0123456789", repeat=depth)
]
NODE, PART, MOVED = "3", "*/4", "9"
NEWEST = 10
BELOW = (("path", ">=", NODE), ("path", "<", f"{NODE}0"))  # "0" is the character after "/".


class StringForm:
    """Each node stores its path as one string."""

    kind = "Named"
    indexes: tuple[tuple[str, ...], ...] = (("level", "path"), ("path", "-created"))

    def __init__(self, client: raw_client.Client) -> None:
        self.client = client

    def fill(self) -> None:
        self.client.put(self.node(f"{place}", name, place) for place, name in enumerate(NAMES))

    def node(self, key: str, name: str, created: int) -> protobufs.Entity:
        """Return the entity of a node."""
        entity = self.client.entity(self.kind, key)
        entity.properties["level"].integer_value = name.count("/")
        entity.properties["created"].integer_value = created
        self.file(entity, name)
        return entity

    def file(self, entity: protobufs.Entity, name: str) -> None:
        """Set the path of a node."""
        entity.properties["path"].string_value = name

    def subtree(self) -> set[str]:
        """Return a node and everything below it."""
        return _keys(self._run(*BELOW))

    def newest(self) -> set[str]:
        """Return the newest nodes below a node. The range is sorted by path first."""
        fields = ("path", "created")
        found = self._run(*BELOW, order=("path", "-created"), projection=fields)
        ranked = sorted(found, key=lambda each: -each.properties["created"].integer_value)
        return set(self.client.get(self.kind, sorted(_keys(ranked[:NEWEST]))))

    def children(self) -> set[str]:
        """Return the nodes directly below a node."""
        return _keys(self._run(("level", "=", 1), *BELOW))

    def with_part(self) -> set[str]:
        """Return the nodes with a part in their path. All paths must be read."""
        fields = ("path", "created")
        found = [
            each.key.path[-1].name
            for each in self._run(order=("path", "-created"), projection=fields)
            if PART.removeprefix("*/") in each.properties["path"].string_value.split("/")
        ]
        return set(self.client.get(self.kind, found))

    def move(self) -> None:
        """File a node and everything below it under another name, in one transaction."""

        def body(transaction: bytes) -> Iterator[protobufs.Entity]:
            names = [f"{place}" for place, name in enumerate(NAMES) if name[0] == MOVED]
            for key, entity in self.client.get(self.kind, names, transaction).items():
                self.file(entity, f"x{NAMES[int(key)][1:]}")
                yield entity

        self.client.transact(body)

    def _run(self, *where: tuple[str, str, object], **rest: Any) -> list[protobufs.Entity]:
        return list(self.client.run(queries.Query(self.kind, where, **rest)))


class SetForm(StringForm):
    """Each node stores the terms that find it (`categories.terms`)."""

    kind = "Filed"
    indexes = (("terms", "-created"),)

    def file(self, entity: protobufs.Entity, name: str) -> None:
        entity.properties["terms"].ClearField("array_value")
        for term in categories.terms([name]):
            entity.properties["terms"].array_value.values.add(string_value=term)

    def subtree(self) -> set[str]:
        return _keys(self._run(("terms", "=", NODE)))

    def newest(self) -> set[str]:
        return _keys(self._run(("terms", "=", NODE), order=("-created",), limit=NEWEST))

    def children(self) -> set[str]:
        return _keys(self._run(("level", "=", 1), ("terms", "=", NODE)))

    def with_part(self) -> set[str]:
        return _keys(self._run(("terms", "=", PART)))


def _keys(found: Iterable[protobufs.Entity]) -> set[str]:
    return {entity.key.path[-1].name for entity in found}


FORMS = (StringForm, SetForm)
_WITHIN = [place for place, name in enumerate(NAMES) if name[0] == NODE]
ANSWERS = {
    "subtree": _WITHIN,
    "newest": _WITHIN[-NEWEST:],
    "children": [place for place in _WITHIN if NAMES[place].count("/") == 1],
    "with_part": [place for place, name in enumerate(NAMES) if "4" in name.split("/")],
}


def is_right(form: StringForm, question: str) -> bool:
    """Ask a question and return whether the answer is right."""
    found: set[str] = getattr(form, question)()
    return found == {f"{place}" for place in ANSWERS[question]}


def main(host: str, *kinds: str) -> None:
    """Ask an emulator all questions, in both forms or in those of some kinds."""
    for made in FORMS:
        if kinds and made.kind not in kinds:
            continue
        form = made(raw_client.Client(grpc.insecure_channel(host)))
        form.fill()
        for question in ANSWERS:
            began = time.perf_counter()
            word = "right" if is_right(form, question) else "WRONG"
            took = time.perf_counter() - began
            sys.stdout.write(f"{made.kind} {question}: {word}, {1_000 * took:.0f} ms\n")
        form.move()


if __name__ == "__main__":
    main(*sys.argv[1:])
