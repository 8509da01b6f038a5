"""Take a byte-for-byte snapshot of the store: equal snapshots mean that nothing has changed."""

from comments.store import reads
from tests.support import stored_state

# Each browser of a test signs in with its own session, so sessions are left out.
SESSIONS = "Session"


def everything(*without: str) -> dict[bytes, bytes]:
    """Return every entity by its key, except entities of the given kinds."""
    kinds = {each.key.path[0].name for each in stored_state.rows("__kind__")}
    return {
        row.key.SerializeToString(deterministic=True): row.SerializeToString(deterministic=True)
        for kind in sorted(kinds - set(without))
        if not kind.startswith("__")
        for row in reads.fetch(reads.Query(kind))
    }
