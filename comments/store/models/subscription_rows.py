"""Define the kinds and keys of mail subscriptions."""

from comments.store.models import schema


class SubscriberRow(schema.StoredRow):
    """A confirmed e-mail address, encrypted. Only `subscriptions` writes this kind."""

    address = schema.text(required=True)
    since = schema.time(indexed=False)
    day = schema.text(default="")
    sent = schema.integer(indexed=False, default=0)


class SubscriptionRow(schema.StoredRow):
    """One subscription of a subscriber. Only `subscriptions` writes this kind.

    If `shares` is true, the site's owner may see the subscriber's address.
    """

    site = schema.text(required=True)
    owner = schema.string()
    list = schema.text(default="")
    shares = schema.boolean(indexed=False, default=False)
    since = schema.time(indexed=False)


def subscriber_key(subscriber: str) -> schema.RowKey:
    return schema.RowKey(SubscriberRow, subscriber)


def subscription_key(subscriber: str, name: str) -> schema.RowKey:
    return schema.RowKey(SubscriptionRow, name, parent=subscriber_key(subscriber))
