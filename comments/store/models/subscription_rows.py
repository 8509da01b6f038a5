"""Define the kinds and keys of mail subscriptions."""

from datetime import UTC

from google.cloud import ndb

from comments.store.models import schema


class SubscriberRow(schema.StoredRow):
    """A confirmed e-mail address, encrypted. Only `subscriptions` writes this kind."""

    address = schema.TextProperty(required=True)
    since = schema.DateTimeProperty(indexed=False, tzinfo=UTC)
    day = schema.TextProperty(default="")
    sent = schema.IntegerProperty(indexed=False, default=0)


class SubscriptionRow(schema.StoredRow):
    """One subscription of a subscriber. Only `subscriptions` writes this kind.

    With `shares`, the owner of the site may see the subscriber's address.
    """

    site = schema.TextProperty(required=True)
    owner = schema.StringProperty()
    list = schema.TextProperty(default="")
    shares = schema.BooleanProperty(indexed=False, default=False)
    since = schema.DateTimeProperty(indexed=False, tzinfo=UTC)


def subscriber_key(subscriber: str) -> ndb.Key:
    return schema.RowKey(SubscriberRow, subscriber)


def subscription_key(subscriber: str, name: str) -> ndb.Key:
    return schema.RowKey(SubscriptionRow, name, parent=subscriber_key(subscriber))
