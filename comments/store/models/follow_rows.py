"""Define the kind and keys of the threads that readers follow with their tokens."""

from comments.domain import records
from comments.store.models import comment_rows, schema

FIRST = " "  # Key names of threads begin with a site id.
FOLLOWER = "Follower"  # The kind of the rows' parent keys. No entity has this kind.


class FollowRow(schema.StoredRow):
    """A thread that a reader follows. Only `reader_follows` writes this kind.

    `name` is the name under which the site's staff may see that the reader follows; if it is not
    empty, `listed` is the thread's key name.
    """

    thread = schema.text(required=True)
    since = schema.time(indexed=False)
    name = schema.text(default="")
    listed = schema.string(default="")


def follower_key(author: str, site: str) -> schema.RowKey:
    """Return the parent key of an author's rows on a site; it sorts by author, then by site."""
    return schema.RowKey(FOLLOWER, f"{author}/{site}")


def follow_key(author: str, thread: records.ThreadName) -> schema.RowKey:
    return follow_key_of(author, thread.site, comment_rows.thread_key_name(thread))


def follow_key_of(author: str, site: str, thread: str) -> schema.RowKey:
    """Return the key of a row, given the thread's key name. FIRST sorts before all threads."""
    return schema.RowKey(FollowRow, thread, parent=follower_key(author, site))


def site_of(follower: str) -> str:
    """Return the site at the end of the name of a follower's key."""
    return follower.partition("/")[2]


def author_of(follower: str) -> str:
    """Return the author at the start of the name of a follower's key."""
    return follower.rpartition("/")[0]
