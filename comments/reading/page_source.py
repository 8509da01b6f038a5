"""Define the page source: a requested page with its tag and the method that makes it.

Each kind of page is a subclass of `PageSource`. The subclass defines how to cut the page from the
materialized thread, and how to make it with the ordered query if the thread is not materialized.
`look` finds the data for the page and returns the page's tag. A caller that already has a page with
this tag need not make it again.

A tag covers the request and all data of the page, so pages with the same tag are identical in every
process. `make` builds the page from the data that `look` found. If the thread's buckets have been
replaced since then, `make` looks again, which changes `tag`. As long as `lasts` is the thread's tag
(`thread_view.tag`), the same request gives the same page.
"""

import abc
import hashlib
from typing import Generic, TypeVar

from comments import errors
from comments.domain import records
from comments.domain.crypto import cursors
from comments.reading.materialized import directories, first_page, merged_view, thread_view
from comments.reading.materialized.view_cache import HOLDINGS, NotMaterialized
from comments.threads import thread_info

Made = TypeVar("Made")
PageData = first_page.FirstPage | merged_view.View

# This number is part of every tag. Increase it with every change to the JSON around stored
# fragments.
_FORM = "5"
_TRIES = 3


class PageSource(abc.ABC, Generic[Made]):
    """A page that a caller requests.

    The constructor of a subclass sets the first three fields, and can set `first`:

        name    the thread
        key     the request's parameters, without data about the caller
        secret  signs cursors and tags
        first   the page's length, if the thread's head may serve it; 0 for other pages
        tag     identifies the page; "" if it is not known before the page is made
        lasts   the tag of the view or head from which the page is made; "" if it is not known
    """

    name: records.ThreadName
    key: str
    secret: str
    first: int = 0
    is_exact = (
        False  # If True, always probe, because the page also contains rows read outside the view
    )
    tag = ""
    lasts = ""
    _age = 0.0
    _source: PageData | None = None
    _shown: PageData | None = None
    _page: Made | None = None

    def look(self, age: float = 0.0) -> str:
        """Find the data for the page, at most `age` seconds old. Return the page's tag."""
        self._age = 0.0 if self.is_exact else age
        self._source = self._shown = self._page = None
        self.tag = self.lasts = ""
        try:
            source = (
                thread_view.first_page_or_view(self.name, self.first, self._age)
                if self.first
                else thread_view.view(self.name, self._age)
            )
        except NotMaterialized:
            return ""
        self._source = self._shown = source
        named = cursors.label(_FORM, self.key, source.tag).encode()
        # Use a hash of the secret as the key, because the tag must not disclose the secret.
        key = hashlib.sha256(self.secret.encode()).digest()
        self.tag = hashlib.blake2b(named, key=key, digest_size=16).hexdigest()
        self.lasts = source.tag
        return self.tag

    def make(self) -> Made:
        """Make the page from the data that `look` found. Further calls return the same page.

        Raises:
            errors.Overloaded: the thread was compacted during each of several attempts.
        """
        for _ in range(_TRIES):
            if self._page is not None:
                return self._page
            try:
                source = self._source
                self._page = self._query() if source is None else self._cut_page(source)
            except directories.DirectoryOutdated:
                HOLDINGS.get().forget(self.name)
                self.look(self._age)
            except NotMaterialized:
                self._source = self._shown = None
                self.tag = self.lasts = ""
        if self._page is None:
            raise errors.Overloaded("the thread is compacted faster than it is read")
        return self._page

    def page(self) -> Made:
        """Call `look`, and make the current page."""
        self.look()
        return self.make()

    def heading(self) -> records.ThreadHeading | records.Thread | None:
        """Return the thread's title and address, or None if the thread has no comments yet."""
        shown = self._shown
        if isinstance(shown, merged_view.View):
            # If the view lacks the title and address, they have changed, so do not use a cached
            # copy.
            return first_page.about(shown) or thread_info.fresh(self.name)
        return (shown.about if shown else None) or thread_info.get(self.name)

    @abc.abstractmethod
    def _cut_page(self, source: PageData) -> Made:
        """Cut the page from the materialized thread.

        Raises:
            directories.DirectoryOutdated: a bucket has been replaced.
            NotMaterialized: the caller must use the ordered query.
        """

    @abc.abstractmethod
    def _query(self) -> Made:
        """Make the page with the ordered query."""
