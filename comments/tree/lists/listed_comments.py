"""Read single comments as readers see them, with their ancestors."""

from comments import errors
from comments.domain import records
from comments.domain.ids import imported_ids
from comments.store import reads, transactions
from comments.store.models import comment_rows, conversion


def by_id(comment_id: str) -> records.Comment:
    """Read a listed comment.

    Raises:
        errors.NotFound: the comment does not exist or is not listed.
    """
    return _listed_record(_row(comment_id), comment_id)


def in_thread(name: records.ThreadName, comment_id: str, *, field: str) -> records.Comment:
    """Read a listed comment in a thread. `field` is the parameter that named the comment.

    If no comment of this site has this id, the id may be from an export that was imported into this
    site. The imported comment then has another id here, and finding it costs a second read.

    Raises:
        errors.NotFound: the comment does not exist or is not listed.
        errors.BadInput: the comment is in a different thread.
    """
    row = _row(comment_id)
    if comment_id and (row is None or row.site != name.site):
        own = imported_ids.comment_id(name.site, imported_ids.OWN, comment_id)
        row = _row(own) or row
    comment = _listed_record(row, comment_id)
    if (comment.site, comment.thread) != (name.site, name.id):
        raise errors.BadInput(field, "other-thread")
    return comment


def _row(comment_id: str) -> comment_rows.CommentRow | None:
    row: comment_rows.CommentRow | None = (
        reads.get(comment_rows.comment_key(comment_id)) if comment_id else None
    )
    return row


def _listed_record(row: comment_rows.CommentRow | None, comment_id: str) -> records.Comment:
    if row is None or not row.listed:
        raise errors.NotFound("comment", comment_id)
    return conversion.comment_record(row)


def with_ancestors(comment_id: str) -> tuple[records.Comment, tuple[records.Comment, ...]]:
    """Read a listed comment and its ancestors, root first.

    Raises:
        errors.NotFound: the comment does not exist or is not listed.
    """

    def body() -> tuple[records.Comment, tuple[records.Comment, ...]]:
        row = by_id(comment_id)
        return row, ancestors(row)

    return transactions.at_one_moment(body)


def ancestors(row: records.Comment) -> tuple[records.Comment, ...]:
    """Read the ancestors of a comment, root first."""
    above: list[records.Comment] = []
    parent = row.parent
    while parent is not None:
        ancestor = reads.get(comment_rows.comment_key(parent))
        if ancestor is None:
            break
        above.append(conversion.comment_record(ancestor))
        parent = ancestor.parent
    return tuple(reversed(above))
