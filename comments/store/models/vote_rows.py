"""Define the kinds and keys for votes, comments with uncounted votes, and voters per network."""

from typing import Any

from comments.store.models import schema
from comments.store.models.comment_rows import comment_key


class VoteRow(schema.StoredRow):
    """One voter's vote on one comment. Only `votes` writes this kind."""

    value = schema.integer(indexed=False, required=True)
    side = schema.string(required=True)
    own = schema.string(required=True)
    thread = schema.string(required=True)


class VotesDueRow(schema.StoredRow):
    """A mark for a comment with uncounted votes. Only `votes` writes this kind."""

    thread = schema.string(required=True)
    due = schema.time(required=True)


class VoterNetworkRow(schema.StoredRow):
    """One network's voters on one comment. Only `votes` writes this kind."""

    voters = schema.texts()
    due = schema.time(required=True)


def vote_key(comment_id: str, voter: str) -> schema.RowKey:
    return schema.RowKey(VoteRow, voter, parent=comment_key(comment_id))


def key_of(message: Any) -> schema.RowKey:
    """Return the key of an entity that was read as a protobuf message."""
    return schema.RowKey(*(part for step in message.key.path for part in (step.kind, step.name)))


def votes_due_key(comment_id: str) -> schema.RowKey:
    """Return the key of the mark for a comment with uncounted votes."""
    return schema.RowKey(VotesDueRow, comment_id)


def voter_network_key(comment_id: str, digest: str) -> schema.RowKey:
    """Return the key for a network's voters on a comment; `digest` identifies the network."""
    return schema.RowKey(VoterNetworkRow, digest, parent=comment_key(comment_id))
