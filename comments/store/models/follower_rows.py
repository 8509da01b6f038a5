"""Large lists of ids, and who is told of what by mail: their kinds and keys."""

from datetime import UTC

from google.cloud import ndb

from comments.domain import records

_GENERATION = 10  # digits


class FollowerList(ndb.Model):
    """Where a large list of ids stands. Written by `follower_compaction` only, drawn in `id_sets`.

    Marks of generations up to `folded` are in the segments that `content` names; new ones are
    written for `generation`. `version` is the token of the attempt that wrote the content.
    """

    version = ndb.TextProperty(default="")
    generation = ndb.IntegerProperty(indexed=False, required=True)
    folded = ndb.IntegerProperty(indexed=False, required=True)
    content = ndb.BlobProperty(indexed=False)


class FollowerMark(ndb.Model):
    """One id that joined a list or left it. Written by `follower_lists` only.

    `entry` is generation, sign and list, so that one query without entities gives the ids that
    joined in a generation, in order. `asks` marks ask for a folding.
    """

    entry = ndb.StringProperty(required=True)
    asks = ndb.BooleanProperty(default=False)


class FollowerSegment(ndb.Model):
    """A part of a list, written once by `follower_compaction`. Drawn in `id_sets`."""

    content = ndb.BlobProperty(indexed=False)


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


class Subscriber(ndb.Model):
    """A confirmed mail address, sealed. Written by `subscriptions` only, and drawn there."""

    address = ndb.TextProperty(required=True)
    since = ndb.DateTimeProperty(indexed=False, tzinfo=UTC)
    day = ndb.TextProperty(default="")
    sent = ndb.IntegerProperty(indexed=False, default=0)


class Subscription(ndb.Model):
    """One thing that a subscriber is told of. Written by `subscriptions` only, and drawn there."""

    site = ndb.TextProperty(required=True)
    owner = ndb.StringProperty()
    list = ndb.TextProperty(default="")
    since = ndb.DateTimeProperty(indexed=False, tzinfo=UTC)


def subscriber_key(subscriber: str) -> ndb.Key:
    """The key of a subscriber."""
    return ndb.Key(Subscriber, subscriber)


def subscription_key(subscriber: str, name: str) -> ndb.Key:
    """The key of what a subscriber is told of."""
    return ndb.Key(Subscription, name, parent=subscriber_key(subscriber))
