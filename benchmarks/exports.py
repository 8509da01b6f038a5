"""Generate large exports whose threads have the shape of real discussions.

The same comments are written as Disqus XML and as JSON lines (the format `generic`).
"""

import html
import json
import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from benchmarks.threads import conversations, shapes

ORIGIN = "https://blog.example"
LARGEST = 2_500  # Comments in a thread
_BEGAN = datetime(2015, 1, 1, tzinfo=UTC)
_READERS = 5_000


class ExportedComment(NamedTuple):
    """A comment; `thread` is the number of its page."""

    id: str
    thread: int
    parent: str | None
    created: datetime
    name: str
    body: str


def even_sizes(count: int) -> Iterator[int]:
    """Yield the sizes of threads that are as large as possible."""
    for start in range(0, count, LARGEST):
        yield min(LARGEST, count - start)


def falling_sizes(count: int) -> Iterator[int]:
    """Yield the sizes of many threads: the second is half as large as the first, and so on."""
    thread = 0
    while count:
        thread += 1
        size = min(count, max(1, LARGEST // thread))
        count -= size
        yield size


def comments(sizes: Iterable[int], first: int = 0) -> Iterator[ExportedComment]:
    """Yield the comments of threads of these sizes, thread by thread, in order of time.

    A different `first` gives different ids.
    """
    whole = shapes.grown(LARGEST)
    chance = random.Random(1)
    for thread, size in enumerate(sizes, start=1):
        created = _BEGAN + timedelta(days=thread)
        for said in conversations.thread(whole[:size], seed=thread, first=first):
            created += timedelta(seconds=int(chance.expovariate(1 / 10_000)))
            # A few readers write a lot.
            reader = min(int(chance.paretovariate(0.7)), _READERS)
            yield ExportedComment(
                said.id, thread, said.parent, created, f"reader {reader}", said.body
            )
        first += size


def disqus(found: Iterator[ExportedComment]) -> Iterator[str]:
    """Yield the lines of a Disqus export."""
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield '<disqus xmlns="http://disqus.com" xmlns:dsq="http://disqus.com/disqus-internals">'
    begun = 0
    for each in found:
        if each.thread != begun:
            begun = each.thread
            yield f'<thread dsq:id="{begun}"><id/><link>{ORIGIN}/posts/{begun}</link>'
            yield f"<title>Post {begun}</title><isClosed>false</isClosed></thread>"
        parent = f'<parent dsq:id="{each.parent}"/>' if each.parent else ""
        yield (
            f'<post dsq:id="{each.id}"><message>{html.escape(f"<p>{each.body}</p>")}</message>'
            f"<createdAt>{each.created:%Y-%m-%dT%H:%M:%SZ}</createdAt><isDeleted>false</isDeleted>"
            f"<isSpam>false</isSpam><author><name>{each.name}</name>"
            f"<email>{each.name.replace(' ', '')}@example.org</email></author>"
            f'<thread dsq:id="{each.thread}"/>{parent}</post>'
        )
    yield "</disqus>"


def generic(found: Iterator[ExportedComment]) -> Iterator[str]:
    """Yield JSON lines."""
    for each in found:
        yield json.dumps(
            {
                "id": each.id,
                "page": f"{ORIGIN}/posts/{each.thread}",
                "title": f"Post {each.thread}",
                "parent": each.parent,
                "author": each.name,
                "email": f"{each.name.replace(' ', '')}@example.org",
                "time": each.created.isoformat(),
                "text": f"<p>{each.body}</p>",
                "format": "html",
            }
        )


WRITERS = {"disqus": disqus, "generic": generic}


def write(path: Path, system: str, sizes: Iterable[int], first: int = 0) -> None:
    """Write an export of threads of these sizes."""
    with path.open("w", encoding="utf-8") as file:
        for line in WRITERS[system](comments(sizes, first)):
            file.write(f"{line}\n")
