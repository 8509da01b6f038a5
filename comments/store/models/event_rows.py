"""What waits to be done or told, and how often something may be asked: kinds and keys."""

from datetime import UTC

from google.cloud import ndb

from comments.store.models import schema


class RateBucket(schema.Kind):
    """How often something happened lately. Written by `limits` only, and drawn there."""

    began = schema.DateTimeProperty(indexed=False, required=True, tzinfo=UTC)
    count = schema.IntegerProperty(indexed=False, default=0)
    recent = schema.BlobProperty(indexed=False)
    ends = schema.DateTimeProperty(tzinfo=UTC)


class Event(schema.Kind):
    """Something that happened to a comment. Written by `outbox` only, and drawn there."""

    kind = schema.TextProperty(required=True)
    changes = schema.TextProperty(required=True)
    done = schema.TextProperty(repeated=True)
    at = schema.DateTimeProperty(indexed=False, tzinfo=UTC)
    due = schema.DateTimeProperty(required=True, tzinfo=UTC)
    since = schema.DateTimeProperty(tzinfo=UTC)
    attempts = schema.IntegerProperty(indexed=False, default=0)
    reason = schema.TextProperty(default="")
    claimed = schema.DateTimeProperty(indexed=False, tzinfo=UTC)
    detail = schema.TextProperty(default="")


class Message(schema.Kind):
    """Something to be told to somebody outside. Written by `messages` only, and drawn there."""

    queue = schema.StringProperty(required=True)
    content = schema.TextProperty(required=True)
    at = schema.DateTimeProperty(indexed=False, tzinfo=UTC)
    due = schema.DateTimeProperty(required=True, tzinfo=UTC)
    since = schema.DateTimeProperty(required=True, tzinfo=UTC)
    waits = schema.BooleanProperty(default=True)
    attempts = schema.IntegerProperty(indexed=False, default=0)
    reason = schema.TextProperty(default="")


class Job(schema.Kind):
    """How far a long work came. `position` is where it goes on, in its own terms."""

    position = schema.TextProperty(required=True)


def rate_bucket_key(name: str) -> ndb.Key:
    """The key of a bucket: its purpose and slot."""
    return ndb.Key(RateBucket, name)


def job_key(name: str) -> ndb.Key:
    """The key of a work that goes on when it was interrupted."""
    return ndb.Key(Job, name)


def event_key(event: str) -> ndb.Key:
    """The key of an event: the comment's id and the revision it came to."""
    return ndb.Key(Event, event)


class SiteHooks(schema.Kind):
    """Where a site's owner wants to be told. Only `webhook_endpoints` writes and describes it."""

    hooks = schema.TextProperty(required=True)


def site_hooks_key(site: str) -> ndb.Key:
    """The key of a site's hooks."""
    return ndb.Key(SiteHooks, site)


def message_key(message: str) -> ndb.Key:
    """The key of a message: the event's id and whom it is for."""
    return ndb.Key(Message, message)
