"""Define the pages of an export and the proposals for them."""

from typing import NamedTuple

MOST_EXAMPLES = 3  # Paths or addresses that a reason names.


class ImportedPage(NamedTuple):
    """A page with comments: its address in the file, and the thread that it becomes.

    Both are canonical (`thread_ids`). `comments` is the number of comments of the whole thread.
    """

    address: str
    thread: str
    comments: int

    @property
    def host(self) -> str:
        """Return the host of the thread."""
        return self.thread.partition("/")[0]

    @property
    def path(self) -> str:
        """Return the path of the thread, with its query."""
        return self.thread[len(self.host) :]


class Proposal(NamedTuple):
    """A mapping and the reason for it; without a mapping, the reason why none is proposed."""

    mapping: str
    reason: str


def examples(texts: list[str]) -> str:
    """Return the first of several texts, without characters that could change a terminal."""
    more = len(texts) - MOST_EXAMPLES
    shown = ", ".join(texts[:MOST_EXAMPLES]) + (f" and {more} more" if more > 0 else "")
    return "".join(c if c.isprintable() else "\ufffd" for c in shown)
