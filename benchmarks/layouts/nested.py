"""A classic layout that numbers the comments in reading order: nested sets.

Each comment stores its position in the thread (`start`), and the position of the last comment
below it (`end`). A subtree is the range between the two, its size is their difference, and a page
at any offset is a range of positions. An inserted comment moves every comment behind it.

Invariants:

1. The positions of a thread are 0, 1, 2 and so on, without a gap, so a reply and all positions that
   it moves change in one transaction.
"""

from collections.abc import Iterator, Sequence

from benchmarks.layouts import packed, rivals
from benchmarks.threads.conversations import Said
from comments.store.wire import queries
from emulator import protobufs


class Nested(rivals.Documents):
    """One entity per comment, with the interval of positions that its subtree takes up."""

    name = "nested"
    kind = "Nested"
    indexes = (("Nested", "thread", "start"), ("Nested", "thread", "end"))

    def fill(self, thread: Sequence[Said]) -> None:
        """Store a thread."""
        order = packed.in_order(thread)
        below = sizes(order)
        self.client.put(
            self._entity(placed.said, start, start + below[start], placed.level)
            for start, placed in enumerate(order)
        )

    def page(self, limit: int, skip: int = 0) -> list[bytes]:
        """Return a page, which begins at the position `skip`."""
        return self._fragments(("start", ">=", skip), ("start", "<", skip + limit))

    def whole(self) -> list[bytes]:
        """Return all comments."""
        return self._fragments()

    def subtree(self, comment_id: str) -> list[bytes]:
        """Return a comment's descendants."""
        start, end, _ = self._place(comment_id)
        return self._fragments(("start", ">", start), ("start", "<=", end))

    def post(self, said: Said) -> None:
        """Store a reply after all existing replies of its parent.

        Raises:
            TooLarge: The moved comments do not fit into one commit.
        """

        def body(transaction: bytes) -> Iterator[protobufs.Entity]:
            start, end, level = self._place(str(said.parent), transaction)
            # These rows are the parent, the comments above it, the comments behind it, and its last
            # descendants, which stay where they are.
            where = (("thread", "=", rivals.THREAD), ("end", ">=", end))
            for row in self.client.run(queries.Query(self.kind, where, ("end",)), transaction):
                values = row.properties
                if values["start"].integer_value > end:
                    values["start"].integer_value += 1
                elif values["start"].integer_value > start:
                    continue
                values["end"].integer_value += 1
                yield row
            yield self._entity(said, end + 1, end + 1, level + 1)

        self.client.transact(body)

    def _place(self, comment_id: str, transaction: bytes = b"") -> tuple[int, int, int]:
        """Return a comment's start, end and level."""
        row = self.client.get(self.kind, [comment_id], transaction)[comment_id]
        start, end, level = (
            row.properties[each].integer_value for each in ("start", "end", "level")
        )
        return start, end, level

    def _fragments(self, *where: tuple[str, str, int]) -> list[bytes]:
        query = queries.Query(self.kind, (("thread", "=", rivals.THREAD), *where), ("start",))
        return [
            packed.fragment(rivals.read(row), row.properties["level"].integer_value)
            for row in self.client.run(query)
        ]

    def _entity(self, said: Said, start: int, end: int, level: int) -> protobufs.Entity:
        entity = self.client.entity(self.kind, said.id)
        rivals.write(entity, said, {"thread": rivals.THREAD})
        values = entity.properties
        values["parent"].string_value = said.parent or ""
        values["level"].integer_value = level
        for name in ("parent", "level"):
            values[name].exclude_from_indexes = True
        values["start"].integer_value = start
        values["end"].integer_value = end
        return entity


def sizes(order: Sequence[packed.Placed]) -> list[int]:
    """Return the number of descendants of each comment of a list in reading order."""
    below = [0] * len(order)
    open_: list[int] = []
    for start, placed in enumerate(order):
        while open_ and order[open_[-1]].level >= placed.level:
            open_.pop()
        for above in open_:
            below[above] += 1
        open_.append(start)
    return below
