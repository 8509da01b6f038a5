"""Define the kinds and keys for votes, comments with uncounted votes, and voters per network."""

from datetime import UTC
from typing import Any

from google.cloud import ndb

from comments.store.models import schema
from comments.store.models.comment_rows import comment_key


class VoteRow(schema.StoredRow):
    """One voter's vote on one comment. Only `votes` writes this kind."""

    value = schema.IntegerProperty(indexed=False, required=True)
    side = schema.StringProperty(required=True)
    own = schema.StringProperty(required=True)
    thread = schema.StringProperty(required=True)


class VotesDueRow(schema.StoredRow):
    """A mark for a comment with uncounted votes. Only `votes` writes this kind."""

    thread = schema.StringProperty(required=True)
    due = schema.DateTimeProperty(required=True, tzinfo=UTC)


class VoterNetworkRow(schema.StoredRow):
    """One network's voters on one comment. Only `votes` writes this kind."""

    voters = schema.TextProperty(repeated=True)
    due = schema.DateTimeProperty(required=True, tzinfo=UTC)


def vote_key(comment_id: str, voter: str) -> ndb.Key:
    return schema.RowKey(VoteRow, voter, parent=comment_key(comment_id))


def key_of(message: Any) -> ndb.Key:
    """Return the NDB key of an entity that was read as a protobuf message."""
    return schema.RowKey(*(part for each in message.key.path for part in (each.kind, each.name)))


def votes_due_key(comment_id: str) -> ndb.Key:
    """Return the key of the mark for a comment with uncounted votes."""
    return schema.RowKey(VotesDueRow, comment_id)


def voter_network_key(comment_id: str, digest: str) -> ndb.Key:
    """Return the key for a network's voters on a comment; `digest` identifies the network."""
    return schema.RowKey(VoterNetworkRow, digest, parent=comment_key(comment_id))
