"""A page that is asked for: what was asked, the ways to it, and the tag that names it.

Owns how an answer is found: from the materialised thread, again from a fresh view if its buckets go
meanwhile, and from the floor where there is none. And tags: a tag names what was asked and all that
the page is made of, so that pages of one tag are the same, in every process.
"""

import contextlib
import functools
import hashlib
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from comments.domain import records
from comments.domain.crypto import cursors
from comments.reading.materialized import first_page, merged_view, thread_view

T = TypeVar("T")
Made = TypeVar("Made")

# Part of every tag. Raise it with any change of the JSON that stored fragments are put into.
_FORM = "3"


class Offer(msgspec.Struct, Generic[Made], frozen=True):
    """A page that can be made now.

    `tag` names what was asked and all that the page is made of, so pages of one tag are the same;
    "" where that is not known before the page is made. While `lasts` is the thread's tag
    (`thread_view.tag`) the same question gets the same answer; "" where nobody can say.
    """

    tag: str
    make: Callable[[], Made]
    lasts: str = ""


class Listing(msgspec.Struct, Generic[Made], frozen=True):
    """A page that is asked for, and the ways to it.

    `key` names what was asked, and nothing of who asked. `cut` makes the page from a view, where
    one will do; `otherwise` asks the floor. `check` refuses, before any tag is offered, what was
    right when the tag was given and is not any more. A first page of `first` comments is made by
    `top` where the thread's head is one. An `exact` page is never of some age: it holds a comment
    that was read beside the view, and that another process may just have stored.
    """

    name: records.ThreadName
    key: str
    secret: str
    otherwise: Callable[[], Made]
    cut: Callable[[merged_view.View], Made] | None = None
    check: Callable[[merged_view.View], object] | None = None
    first: int = 0
    top: Callable[[first_page.Head], Made] | None = None
    exact: bool = False

    def page(self) -> Made:
        """Make the page."""
        return self.answer(lambda offer: offer.make())

    def answer(self, give: Callable[[Offer[Made]], T], *, age: float = 0.0) -> T:
        """Answer from an offer: `give` may find that the page need not be made.

        A page may be `age` seconds old, see `thread_view`.

        It is called again, with another offer, if the thread's buckets go while it makes the page.
        """
        with contextlib.suppress(thread_view.NotMaterialized):
            return self.materialised(give, age=age)
        page = self.otherwise()
        return give(Offer("", lambda: page))

    def materialised(self, give: Callable[[Offer[Made]], T], *, age: float = 0.0) -> T:
        """Answer as `answer` does, but never from the floor.

        Raises:
            materialized.NotMaterialized: only the floor knows the thread, or this page of it.
        """
        cut = self.cut
        if cut is None:
            raise thread_view.NotMaterialized("no view is cut for such a page")
        age = 0.0 if self.exact else age
        offer = self._headed(age)
        if offer is not None:
            return give(offer)
        return thread_view.using(self.name, lambda view: give(self._offer(view, cut)), age=age)

    def _headed(self, age: float) -> Offer[Made] | None:
        """The first page, if the thread's head is one now; else a view is to be asked, at once."""
        top = self.top
        head = None if top is None else thread_view.head(self.name, self.first, age)
        if head is None or top is None:
            return None
        return Offer(self._tag(head.tag), lambda: top(head), lasts=head.tag)

    def _offer(
        self, view: merged_view.View, cut: Callable[[merged_view.View], Made]
    ) -> Offer[Made]:
        if self.check is None:
            return Offer(self._tag(view.tag), lambda: cut(view), lasts=view.tag)
        self.check(view)
        return Offer(self._tag(view.tag), lambda: cut(view))

    def _tag(self, thread: str) -> str:
        whole = cursors.label(_FORM, self.key, thread).encode()
        return hashlib.blake2b(whole, key=_digest(self.secret), digest_size=16).hexdigest()


@functools.lru_cache(maxsize=4)
def _digest(secret: str) -> bytes:
    # The secret signs the cursor in the page; nobody learns it from a keyed digest.
    return hashlib.sha256(secret.encode()).digest()
