"""Take a byte-for-byte snapshot of the store; equal snapshots mean that nothing has changed."""

from comments.store import reads
from tests.support import stored_state

# Snapshots omit sessions, because each of a test's browsers signs in with a separate session.
SESSIONS = "Session"


def everything(*without: str) -> dict[bytes, bytes]:
    """Return every entity by key, except entities of the given kinds."""
    kinds = {each.key.path[0].name for each in stored_state.rows("__kind__")}
    return {
        row.key.SerializeToString(deterministic=True): row.SerializeToString(deterministic=True)
        for kind in sorted(kinds - set(without))
        if not kind.startswith("__")
        for row in reads.fetch(reads.Query(kind))
    }
