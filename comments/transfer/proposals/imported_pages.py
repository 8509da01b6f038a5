"""Define the pages of an export and the proposals for them."""

import contextlib
from typing import NamedTuple

from comments import errors
from comments.transfer.checking import page_mapping

MOST_EXAMPLES = 3  # Maximum number of paths or addresses that a reason names.


class ImportedPage(NamedTuple):
    """A page with comments: its address in the file, and the thread that it becomes.

    The address and the thread id are canonical (`thread_ids`). `comments` is the number of comments
    in the whole thread.
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
    """A mapping and its reason; if `mapping` is empty, the reason why none is proposed."""

    mapping: str
    reason: str


def mapping(old: str, new: str) -> str:
    """Return the shortest text that maps one address to another; "" if there is none.

    Addresses may contain `=`, so the new address may need a scheme to show where it begins.
    """
    for text in (f"{old}={new}", f"{old}=https://{new}"):
        with contextlib.suppress(errors.ImportRefused):
            moved = page_mapping.PageMapping([text]).apply(f"https://{old}").url
            if moved.rstrip("/") == f"https://{new}".rstrip("/"):
                return text
    return ""


def examples(texts: list[str]) -> str:
    """Return the first of several texts, without characters that could control a terminal."""
    more = len(texts) - MOST_EXAMPLES
    shown = ", ".join(texts[:MOST_EXAMPLES]) + (f" and {more} more" if more > 0 else "")
    return "".join(c if c.isprintable() else "\ufffd" for c in shown)
