"""Ids of imported comments, which are the same in every import (pure).

If an operator imports an export of Flatthread, the comments keep their ids, except ids that another
website of the service uses already. Comments whose ids are in use already, and all comments of an
export that an owner uploads, get the ids that `comment_id` derives for the system `OWN`. The same
function derives the stored id from the former id, so no stored row is needed to find such a comment
by its former id.
"""

import hashlib

from comments.domain.crypto import keyed_hashes

OWN = "flatthread"


def comment_id(site: str, system: str, source_id: str) -> str:
    """Return the id of an imported comment, which is the same in every import."""
    # This code must never change: if it returned different ids, a repeated import would add every
    # comment again.
    digest = hashlib.sha256()
    for part in (site, system, source_id):
        data = part.encode()
        digest.update(len(data).to_bytes(4, "big") + data)
    return keyed_hashes.text(digest.digest())
