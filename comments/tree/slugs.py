"""Find a comment in its thread by its id or its slug.

A slug is the comment's path of numbers, such as 1-2-3, and determines the sort hash, so one range
query finds the comment. Finding a comment by its id or by its slug costs one read.
"""

from comments import errors
from comments.domain import records, sorthash
from comments.store import transactions
from comments.store.models import comment_rows
from comments.tree import ordered_query


def find(
    scheme: sorthash.Scheme, name: records.ThreadName, address: str, *, field: str
) -> records.Comment:
    """Read a listed comment in a thread. `field` is the parameter that contained the address.

    Raises:
        errors.NotFound: no listed comment has this id or slug.
        errors.BadInput: the comment is in a different thread.
    """
    if comment_rows.is_comment_id(address):
        return ordered_query.listed_in(name, address, field=field)
    try:
        sort_hash = sorthash.from_slug(scheme, address)
    except sorthash.BadSortHash as error:
        raise errors.NotFound("comment", address) from error
    found = ordered_query.stretch(name, sort_hash, sort_hash + "\0", limit=1)
    if not found:
        raise errors.NotFound("comment", address)
    return found[0]


def with_ancestors(
    scheme: sorthash.Scheme, name: records.ThreadName, slug: str
) -> tuple[records.Comment, tuple[records.Comment, ...]]:
    """Read the listed comment with a slug and its ancestors, root first.

    Raises:
        errors.NotFound: no listed comment has this slug.
    """

    def read() -> tuple[records.Comment, tuple[records.Comment, ...]]:
        row = find(scheme, name, slug, field="slug")
        return row, ordered_query.ancestors(row)

    return transactions.at_one_moment(read)
