"""Walk a thread recursively by the answered comments: an oracle for trees under any scheme.

The oracle shares no code with `tree/schemes/reshaping`. It stores no places: the order follows from
the answered comments, the dates and the number of levels alone, if all dates differ and each group
of siblings was numbered by date.
"""

from collections.abc import Iterable, Iterator

from comments.domain import records
from comments.store import reads
from comments.store.models import comment_rows, conversion


def stored(name: records.ThreadName) -> list[records.Comment]:
    """Read all comments of a thread, in the order of their hashes."""
    where = (("thread", "=", comment_rows.thread_key_name(name)),)
    query = reads.Query("Comment", where=where, order=("sort_hash",))
    return [conversion.comment_from_message(message) for message in reads.fetch(query)]


def parents(rows: Iterable[records.Comment], levels: int) -> dict[str, str | None]:
    """Return each comment's parent in a tree with this number of levels."""
    answers = {row.id: row.reply_to for row in rows}

    def parent(comment: str) -> str | None:
        answered = answers[comment]
        if answered is not None and level(answered) == levels - 1:
            return parent(answered)
        return answered

    def level(comment: str) -> int:
        above = parent(comment)
        return 0 if above is None else level(above) + 1

    return {comment: parent(comment) for comment in answers}


def order(rows: Iterable[records.Comment], levels: int) -> list[str]:
    """Return the ids in reading order: depth first, siblings by date."""
    rows = list(rows)
    above = parents(rows, levels)

    def visit(parent: str | None) -> Iterator[str]:
        siblings = [row for row in rows if above[row.id] == parent]
        for row in sorted(siblings, key=lambda row: row.created):
            yield row.id
            yield from visit(row.id)

    return list(visit(None))


def numbered(
    rows: Iterable[records.Comment], levels: int, before: dict[str, tuple[str | None, int]]
) -> dict[str, int]:
    """Return the numbers: a kept one if it still fits, otherwise the next after the sibling."""
    rows = list(rows)
    above = parents(rows, levels)
    numbers: dict[str, int] = {}

    def visit(parent: str | None) -> None:
        last = -1 if parent is None else 0
        siblings = [row for row in rows if above[row.id] == parent]
        for row in sorted(siblings, key=lambda row: row.created):
            was_below, was = before[row.id]
            last = was if was_below == parent and was > last else last + 1
            numbers[row.id] = last
            visit(row.id)

    visit(None)
    return numbers
