"""Votes, which comments have some to count, and how many a network has: kinds and keys."""

from datetime import UTC
from typing import Any

from google.cloud import ndb

from comments.store.models import schema
from comments.store.models.comment_rows import comment_key


class Vote(schema.Kind):
    """One voter's vote on one comment. Written by `votes` only, and drawn there."""

    value = schema.IntegerProperty(indexed=False, required=True)
    side = schema.StringProperty(required=True)
    own = schema.StringProperty(required=True)
    thread = schema.StringProperty(required=True)


class VotesDue(schema.Kind):
    """Says that a comment has votes its row does not count. Written by `votes` only."""

    thread = schema.StringProperty(required=True)
    due = schema.DateTimeProperty(required=True, tzinfo=UTC)


class VoterNetwork(schema.Kind):
    """The voters of one network on one comment. Written by `votes` only, and drawn there."""

    voters = schema.TextProperty(repeated=True)
    due = schema.DateTimeProperty(required=True, tzinfo=UTC)


def vote_key(comment_id: str, voter: str) -> ndb.Key:
    """The key of a voter's vote on a comment."""
    return ndb.Key(Vote, voter, parent=comment_key(comment_id))


def key_of(message: Any) -> ndb.Key:
    """The key of an entity that was read as a message, at the end of its path."""
    return ndb.Key(*(part for each in message.key.path for part in (each.kind, each.name)))


def votes_due_key(comment_id: str) -> ndb.Key:
    """The key of what says that votes on a comment are to be counted."""
    return ndb.Key(VotesDue, comment_id)


def voter_network_key(comment_id: str, digest: str) -> ndb.Key:
    """The key of the voters of a network, which `digest` stands for, on a comment."""
    return ndb.Key(VoterNetwork, digest, parent=comment_key(comment_id))
