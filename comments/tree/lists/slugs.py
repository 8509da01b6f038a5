"""Find a comment in its thread by its id or its slug.

A slug is the comment's path of numbers, such as 1-2-3, and determines the sort hash, so one range
query finds the comment. Finding a comment by its id or by its slug costs one read. If this read
finds nothing, up to three more reads follow. They look for the slug under the thread's own scheme,
which may differ from the site's scheme, and among the slugs that comments had before their thread
moved to another scheme, or before they moved to another thread.

Two merged threads have comments with the same former slug. The id of the thread in the request
tells which one is meant: `address_from` adds it to a slug if it is not the stored thread's id.
"""

from comments import errors
from comments.domain import records
from comments.domain.counters import counting
from comments.domain.ids import sorthash
from comments.store import reads, transactions
from comments.store.models import comment_rows, conversion
from comments.tree.lists import listed_comments, ordered_query
from comments.tree.schemes import scheme_change


def find(
    scheme: sorthash.Scheme, name: records.ThreadName, address: str, *, field: str
) -> records.Comment:
    """Read a listed comment in a thread. `field` is the parameter that contained the address.

    Raises:
        errors.NotFound: no listed comment has this id or slug.
        errors.BadInput: the comment is in a different thread.
    """
    if comment_rows.is_comment_id(address):
        return listed_comments.in_thread(name, address, field=field)
    slug, _, digest = address.partition(scheme_change.FROM)
    comment = _at(scheme, name, slug) or _of_thread(scheme, name, slug, digest)
    if comment is None:
        raise errors.NotFound("comment", slug)
    return comment


def address_from(given: records.ThreadName, address: str) -> str:
    """Return the address of a comment for `find`, given another id of its thread."""
    if comment_rows.is_comment_id(address):
        return address
    return f"{address}{scheme_change.FROM}{_digest(given)}"


def _digest(name: records.ThreadName) -> str:
    return counting.thread_digest(comment_rows.thread_key_name(name))


def _at(scheme: sorthash.Scheme, name: records.ThreadName, slug: str) -> records.Comment | None:
    try:
        sort_hash = sorthash.from_slug(scheme, slug)
    except sorthash.BadSortHash:
        return None
    rows = ordered_query.stretch(name, sort_hash, sort_hash + "\0", limit=1)
    return next((row for row in rows if row.slug == slug), None)


def _of_thread(
    scheme: sorthash.Scheme, name: records.ThreadName, slug: str, digest: str
) -> records.Comment | None:
    """Find a slug under the thread's own scheme, or a former slug.

    A former slug may belong to several comments. A comment that had the slug in the thread of the
    request comes first, even if it left that thread; of several, the oldest one in this thread.
    """
    thread = reads.get(comment_rows.thread_key(name))
    own = conversion.scheme_of(thread, scheme)
    if own != scheme:
        comment = _at(own, name, slug)
        if comment is not None:
            return comment
    here = ("thread", "=", comment_rows.thread_key_name(name))
    left = f"{slug}{scheme_change.FROM}{digest or _digest(name)}"
    for where in ((("former_slugs", "=", left),), (here, ("former_slugs", "=", slug))):
        messages = reads.fetch(reads.Query("Comment", where=where))
        rows = records.visible(map(conversion.comment_from_message, messages))
        comment = min(rows, key=lambda row: (row.thread != name.id, row.created), default=None)
        if comment is not None:
            return comment
    return None


def with_ancestors(
    scheme: sorthash.Scheme, name: records.ThreadName, slug: str
) -> tuple[records.Comment, tuple[records.Comment, ...]]:
    """Read the listed comment with a slug and its ancestors, root first.

    Raises:
        errors.NotFound: no listed comment has this slug.
    """

    def read() -> tuple[records.Comment, tuple[records.Comment, ...]]:
        row = find(scheme, name, slug, field="slug")
        return row, listed_comments.ancestors(row)

    return transactions.at_one_moment(read)
