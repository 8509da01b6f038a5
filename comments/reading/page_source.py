"""A page source: a page that is asked for, with the tag that names it and a method that makes it.

Each kind of page is a subclass of `PageSource`. It says how the page is cut from the materialised
thread, and what the ordered query answers where there is none. `look` finds out what the page is
made of now and returns its tag, so that a caller who has a page of that tag need not make it.

Invariants:

1. A tag names what was asked and everything that the page is made of: pages of one tag are the
   same, in every process.
2. `make` makes the page of what `look` found. If the thread's buckets were replaced meanwhile, it
   looks again: `tag` is another one then.
3. While `lasts` is the thread's tag (`thread_view.tag`), the same question gets the same answer.
"""

import abc
import hashlib
from typing import Generic, TypeVar

from comments import errors
from comments.domain import records
from comments.domain.crypto import cursors
from comments.reading.materialized import directories, first_page, merged_view, thread_view
from comments.reading.materialized.view_cache import HOLDINGS, NotMaterialized
from comments.sites import thread_info

Made = TypeVar("Made")
Found = first_page.Head | merged_view.View

# Part of every tag. Raise it with any change of the JSON that stored fragments are put into.
_FORM = "3"
_TRIES = 3


class PageSource(abc.ABC, Generic[Made]):
    """A page that is asked for, by one caller.

    A subclass sets the first three when it is made:

        name    the thread
        key     what was asked, and nothing of who asked
        secret  signs cursors and tags
        first   the length of a first page that the thread's head may be; 0 for other pages
        tag     names the page; "" where that is not known before the page is made
        lasts   the thread's tag that the page rests on; "" where nobody can say
    """

    name: records.ThreadName
    key: str
    secret: str
    first: int = 0
    is_exact = False  # never of some age: it holds what was read beside the view
    tag = ""
    lasts = ""
    _age = 0.0
    _found: Found | None = None
    _shown: Found | None = None
    _page: Made | None = None

    def look(self, age: float = 0.0) -> str:
        """Find out what the page is made of now, or was at most `age` seconds ago; its tag."""
        self._age = 0.0 if self.is_exact else age
        self._found = self._shown = self._page = None
        self.tag = self.lasts = ""
        try:
            found = (
                thread_view.head_or_view(self.name, self.first, self._age)
                if self.first
                else thread_view.view(self.name, self._age)
            )
        except NotMaterialized:
            return ""
        self._found = self._shown = found
        named = cursors.label(_FORM, self.key, found.tag).encode()
        # The secret signs the cursor in the page; nobody learns it from a keyed digest.
        key = hashlib.sha256(self.secret.encode()).digest()
        self.tag = hashlib.blake2b(named, key=key, digest_size=16).hexdigest()
        self.lasts = found.tag
        return self.tag

    def make(self) -> Made:
        """Make the page of what `look` found, once however often it is asked for."""
        for _ in range(_TRIES):
            if self._page is not None:
                return self._page
            try:
                found = self._found
                self._page = self._query() if found is None else self._cut(found)
            except directories.Gone:
                HOLDINGS.get().forget(self.name)
                self.look(self._age)
            except NotMaterialized:
                self._found = self._shown = None
                self.tag = self.lasts = ""
        if self._page is None:
            raise errors.Overloaded("the thread is folded faster than it is read")
        return self._page

    def page(self) -> Made:
        """Make the page as of now."""
        self.look()
        return self.make()

    def heading(self) -> records.ThreadHeading | records.Thread | None:
        """What the thread shows of itself beside the page; None where nobody wrote yet."""
        shown = self._shown
        if isinstance(shown, merged_view.View):
            # What a view does not know has changed: copies of the thread may be older than it.
            return first_page.about(shown) or thread_info.fresh(self.name)
        return (shown.about if shown else None) or thread_info.get(self.name)

    @abc.abstractmethod
    def _cut(self, found: Found) -> Made:
        """Cut the page from the materialised thread.

        Raises:
            directories.Gone: a bucket was replaced meanwhile.
            NotMaterialized: ask the ordered query.
        """

    @abc.abstractmethod
    def _query(self) -> Made:
        """Ask the ordered query for the page."""
