"""Find large sets by their stored rows.

These functions read the keys of all marks, or of all marks that request a compaction.
"""

import functools
from collections.abc import Iterator

from comments.domain import records
from comments.store import reads, transactions
from comments.store.large_sets import membership
from comments.store.models import set_rows


def sets_to_compact() -> list[records.SetName]:
    """Find all sets with a mark that requests a compaction."""
    query = reads.Query("FollowerMark", where=(("asks", "=", True),), keys_only=True)
    texts = (message.key.path[0].name for message in reads.walk(query))
    return [records.SetName(text) for text in dict.fromkeys(texts)]


def stored_texts() -> list[str]:
    """Return the texts of all stored set names, sorted.

    The function reads the key of every mark.
    """
    marks = reads.walk(reads.Query("FollowerMark", keys_only=True))
    sets = reads.walk(reads.Query("FollowerList", keys_only=True))
    return sorted({message.key.path[0].name for rows in (marks, sets) for message in rows})


def sets_with(member: str) -> Iterator[records.SetName]:
    """Yield the sets whose rows contain an id, even if the id has left the set.

    The function reads every set.
    """
    marked = (message.key for message in reads.walk(reads.Query("FollowerMark", keys_only=True)))
    texts = {key.path[0].name for key in marked if set_rows.member_of(key.path[-1].name) == member}
    sets = reads.walk(reads.Query("FollowerList", keys_only=True))
    for name in map(
        records.SetName, sorted({*texts, *(message.key.path[-1].name for message in sets)})
    ):
        if name.text in texts or transactions.snapshot(
            functools.partial(membership.is_stored, name, member)
        ):
            yield name
