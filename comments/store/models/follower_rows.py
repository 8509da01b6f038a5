"""Define the kinds and keys for large lists of ids and for mail subscriptions."""

from datetime import UTC

from google.cloud import ndb

from comments.domain import records
from comments.store.models import schema

_GENERATION = 10  # digits


class FollowerListRow(schema.StoredRow):
    """The head of a large list of ids. Only `follower_compaction` writes this kind; see `id_sets`.

    The segments named in `content` include all marks of generations up to `folded`. New marks
    belong to `generation`. `version` is the token of the attempt that wrote the content.
    """

    version = schema.TextProperty(default="")
    generation = schema.IntegerProperty(indexed=False, required=True)
    folded = schema.IntegerProperty(indexed=False, required=True)
    content = schema.BlobProperty(indexed=False)


class FollowerMarkRow(schema.StoredRow):
    """An id that joined or left a list. Only `follower_lists` writes this kind.

    `entry` consists of generation, sign and list, so one keys-only query returns the ids that
    joined in a generation, in order. A mark with `asks` requests a compaction.
    """

    entry = schema.StringProperty(required=True)
    asks = schema.BooleanProperty(default=False)


class FollowerSegmentRow(schema.StoredRow):
    """A part of a list, written once by `follower_compaction`; see `id_sets`."""

    content = schema.BlobProperty(indexed=False)


def follower_list_key(name: records.ListName) -> ndb.Key:
    return schema.RowKey(FollowerListRow, name.text)


def follower_mark_key(name: records.ListName, generation: int, follower: str) -> ndb.Key:
    """Return the key of an id's mark in a generation. The empty id sorts before all other ids."""
    return schema.RowKey(
        FollowerMarkRow, f"{generation:010d}{follower}", parent=follower_list_key(name)
    )


def follower_mark_entry(name: records.ListName, generation: int, *, follows: bool) -> str:
    """Return the `entry` of all marks with this list, generation and sign."""
    return f"{generation:010d}{'+' if follows else '-'}{name.text}"


def follower_segment_key(name: records.ListName, key: str) -> ndb.Key:
    """Return the key of a segment of a list; `key` consists of generation, attempt and number."""
    return schema.RowKey(FollowerSegmentRow, key, parent=follower_list_key(name))


def generation_of(key: str) -> int:
    """Return the generation at the beginning of a mark's or a segment's key name."""
    return int(key[:_GENERATION])


def follower_of(key: str) -> str:
    """Return the id at the end of a mark's key name."""
    return key[_GENERATION:]


class SubscriberRow(schema.StoredRow):
    """A confirmed e-mail address, encrypted. Only `subscriptions` writes this kind."""

    address = schema.TextProperty(required=True)
    since = schema.DateTimeProperty(indexed=False, tzinfo=UTC)
    day = schema.TextProperty(default="")
    sent = schema.IntegerProperty(indexed=False, default=0)


class SubscriptionRow(schema.StoredRow):
    """One subscription of a subscriber. Only `subscriptions` writes this kind."""

    site = schema.TextProperty(required=True)
    owner = schema.StringProperty()
    list = schema.TextProperty(default="")
    since = schema.DateTimeProperty(indexed=False, tzinfo=UTC)


def subscriber_key(subscriber: str) -> ndb.Key:
    return schema.RowKey(SubscriberRow, subscriber)


def subscription_key(subscriber: str, name: str) -> ndb.Key:
    return schema.RowKey(SubscriptionRow, name, parent=subscriber_key(subscriber))
