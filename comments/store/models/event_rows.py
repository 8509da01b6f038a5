"""What waits to be done or told, and how often something may be asked: kinds and keys."""

from datetime import UTC

from google.cloud import ndb


class RateBucket(ndb.Model):
    """How often something happened lately. Written by `limits` only, and drawn there."""

    began = ndb.DateTimeProperty(indexed=False, required=True, tzinfo=UTC)
    count = ndb.IntegerProperty(indexed=False, default=0)
    recent = ndb.BlobProperty(indexed=False)
    ends = ndb.DateTimeProperty(tzinfo=UTC)


class Event(ndb.Model):
    """Something that happened to a comment. Written by `outbox` only, and drawn there."""

    kind = ndb.TextProperty(required=True)
    changes = ndb.TextProperty(required=True)
    done = ndb.TextProperty(repeated=True)
    at = ndb.DateTimeProperty(indexed=False, tzinfo=UTC)
    due = ndb.DateTimeProperty(required=True, tzinfo=UTC)
    since = ndb.DateTimeProperty(tzinfo=UTC)
    attempts = ndb.IntegerProperty(indexed=False, default=0)
    reason = ndb.TextProperty(default="")
    claimed = ndb.DateTimeProperty(indexed=False, tzinfo=UTC)
    detail = ndb.TextProperty(default="")


class Message(ndb.Model):
    """Something to be told to somebody outside. Written by `messages` only, and drawn there."""

    queue = ndb.StringProperty(required=True)
    content = ndb.TextProperty(required=True)
    at = ndb.DateTimeProperty(indexed=False, tzinfo=UTC)
    due = ndb.DateTimeProperty(required=True, tzinfo=UTC)
    since = ndb.DateTimeProperty(required=True, tzinfo=UTC)
    waits = ndb.BooleanProperty(default=True)
    attempts = ndb.IntegerProperty(indexed=False, default=0)
    reason = ndb.TextProperty(default="")


class Job(ndb.Model):
    """How far a long work came. `position` is where it goes on, in its own terms."""

    position = ndb.TextProperty(required=True)


def rate_bucket_key(name: str) -> ndb.Key:
    """The key of a bucket: its purpose and slot."""
    return ndb.Key(RateBucket, name)


def job_key(name: str) -> ndb.Key:
    """The key of a work that goes on when it was interrupted."""
    return ndb.Key(Job, name)


def event_key(event: str) -> ndb.Key:
    """The key of an event: the comment's id and the revision it came to."""
    return ndb.Key(Event, event)


class SiteHooks(ndb.Model):
    """Where a site's owner wants to be told. Only `webhook_endpoints` writes and describes it."""

    hooks = ndb.TextProperty(required=True)


def site_hooks_key(site: str) -> ndb.Key:
    """The key of a site's hooks."""
    return ndb.Key(SiteHooks, site)


def message_key(message: str) -> ndb.Key:
    """The key of a message: the event's id and whom it is for."""
    return ndb.Key(Message, message)
