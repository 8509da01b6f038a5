"""Large lists of ids, and who is told of what by mail: their kinds and keys."""

from datetime import UTC

from google.cloud import ndb

from comments.domain import records
from comments.store.models import schema

_GENERATION = 10  # digits


class FollowerList(schema.Kind):
    """Where a large list of ids stands. Written by `follower_compaction` only, drawn in `id_sets`.

    Marks of generations up to `folded` are in the segments that `content` names; new ones are
    written for `generation`. `version` is the token of the attempt that wrote the content.
    """

    version = schema.TextProperty(default="")
    generation = schema.IntegerProperty(indexed=False, required=True)
    folded = schema.IntegerProperty(indexed=False, required=True)
    content = schema.BlobProperty(indexed=False)


class FollowerMark(schema.Kind):
    """One id that joined a list or left it. Written by `follower_lists` only.

    `entry` is generation, sign and list, so that one query without entities gives the ids that
    joined in a generation, in order. `asks` marks ask for a folding.
    """

    entry = schema.StringProperty(required=True)
    asks = schema.BooleanProperty(default=False)


class FollowerSegment(schema.Kind):
    """A part of a list, written once by `follower_compaction`. Drawn in `id_sets`."""

    content = schema.BlobProperty(indexed=False)


def follower_list_key(name: records.ListName) -> ndb.Key:
    """The key of a list."""
    return ndb.Key(FollowerList, name.text)


def follower_mark_key(name: records.ListName, generation: int, follower: str) -> ndb.Key:
    """The key of the mark of an id in a generation. Without an id: before all of them."""
    return ndb.Key(FollowerMark, f"{generation:010d}{follower}", parent=follower_list_key(name))


def follower_mark_entry(name: records.ListName, generation: int, *, follows: bool) -> str:
    """What all marks of a list, a generation and a sign share."""
    return f"{generation:010d}{'+' if follows else '-'}{name.text}"


def follower_segment_key(name: records.ListName, key: str) -> ndb.Key:
    """The key of a part of a list; `key` is generation, attempt and number."""
    return ndb.Key(FollowerSegment, key, parent=follower_list_key(name))


def generation_of(key: str) -> int:
    """The generation that the name of a mark's or a segment's key begins with."""
    return int(key[:_GENERATION])


def follower_of(key: str) -> str:
    """The id that the name of a mark's key ends with."""
    return key[_GENERATION:]


class Subscriber(schema.Kind):
    """A confirmed mail address, sealed. Written by `subscriptions` only, and drawn there."""

    address = schema.TextProperty(required=True)
    since = schema.DateTimeProperty(indexed=False, tzinfo=UTC)
    day = schema.TextProperty(default="")
    sent = schema.IntegerProperty(indexed=False, default=0)


class Subscription(schema.Kind):
    """One thing that a subscriber is told of. Written by `subscriptions` only, and drawn there."""

    site = schema.TextProperty(required=True)
    owner = schema.StringProperty()
    list = schema.TextProperty(default="")
    since = schema.DateTimeProperty(indexed=False, tzinfo=UTC)


def subscriber_key(subscriber: str) -> ndb.Key:
    """The key of a subscriber."""
    return ndb.Key(Subscriber, subscriber)


def subscription_key(subscriber: str, name: str) -> ndb.Key:
    """The key of what a subscriber is told of."""
    return ndb.Key(Subscription, name, parent=subscriber_key(subscriber))
