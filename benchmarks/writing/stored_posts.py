"""Check that a thread has every acknowledged post once and in order, and nothing else."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlencode


def problems(
    before: Sequence[str], acknowledged: Sequence[Sequence[str]], stored: Sequence[str]
) -> Iterator[str]:
    """Compare ids in reading order with the ids before, and with those of each client's posts.

    A client answers one comment, and sends a post only after the previous one was acknowledged. Its
    posts therefore appear in the order of their acknowledgments.
    """
    counted = Counter(stored)
    yield from (f"{each} is stored {count} times" for each, count in counted.items() if count > 1)
    known = {*before, *(each for client in acknowledged for each in client)}
    yield from (f"{each} was acknowledged and is missing" for each in sorted(known - set(stored)))
    yield from (f"{each} was not acknowledged" for each in sorted(set(stored) - known))
    places = {each: place for place, each in enumerate(stored)}
    for number, client in enumerate(acknowledged):
        found = [places[each] for each in client if each in places]
        if found != sorted(found):
            yield f"the posts of client {number} are not in the order of their acknowledgments"


def stored(ask: Callable[[str], tuple[int, bytes, str]], path: str) -> list[str]:
    """Read all ids of a thread in reading order, page by page."""
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        query = {"limit": 200} | ({"cursor": cursor} if cursor else {})
        status, body, _ = ask(f"{path}&{urlencode(query)}")
        if status != 200:
            raise SystemExit(f"{path} answered {status}: {body[:400]!r}")
        page = json.loads(body)
        found += [each["id"] for each in page["comments"]]
        cursor = page["cursor"]
    return found
