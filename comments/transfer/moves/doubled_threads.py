"""Find discussions that a site has twice: threads with equal comments. Nothing is stored.

Such threads are one page under two addresses, for example because exports of two systems were
imported. Two comments are equal if their author's name, their time and their HTML are.
"""

import hashlib
from collections import Counter

import msgspec

from comments.domain import records
from comments.store import reads
from comments.store.models import conversion
from comments.threads import thread_info


class DoubledThreads(msgspec.Struct, frozen=True):
    """Two threads, by the ids that they show, and the number of comments that are in both.

    `comments` is the number of comments with a text in the thread `double`, the smaller one.
    """

    thread: str
    double: str
    doubled: int
    comments: int


def find(site: str) -> list[DoubledThreads]:
    """Return the pairs of threads with equal comments, those with most of them first.

    This reads all comments of the site. It needs about 200 bytes of memory for each of them.
    """
    threads: dict[bytes, set[str]] = {}
    sizes: Counter[str] = Counter()
    for message in reads.walk(reads.Query("Comment", where=(("site", "=", site),))):
        comment = conversion.comment_from_message(message)
        if comment.html:
            content = msgspec.json.encode((comment.author.name, comment.created, comment.html))
            threads.setdefault(hashlib.sha256(content).digest(), set()).add(comment.thread)
            sizes[comment.thread] += 1
    pairs: Counter[tuple[str, str]] = Counter()
    for same in threads.values():
        first, *others = sorted(same, key=lambda thread: (-sizes[thread], thread))
        pairs.update((first, other) for other in others)
    return [
        DoubledThreads(_shown_id(site, first), _shown_id(site, other), doubled, sizes[other])
        for (first, other), doubled in pairs.most_common()
    ]


def _shown_id(site: str, thread: str) -> str:
    info = thread_info.fresh(records.ThreadName(site, thread))
    return thread if info is None else info.shown_id
