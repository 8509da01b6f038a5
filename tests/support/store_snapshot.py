"""Take a byte-for-byte snapshot of the store; equal snapshots mean that nothing has changed."""

from comments.store import reads
from tests.support import stored_state

# Snapshots omit sessions, because each of a test's browsers signs in with a separate session.
SESSIONS = "Session"


def everything(*without: str) -> dict[bytes, bytes]:
    """Return every entity by key, except entities of the given kinds."""
    return {
        row.key.SerializeToString(deterministic=True): row.SerializeToString(deterministic=True)
        for kind in stored_state.kind_names()
        if kind not in without
        for row in reads.fetch(reads.Query(kind))
    }
