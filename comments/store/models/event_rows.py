"""Define the kinds and keys for events, messages, jobs, imports, webhooks and rate limits."""

from datetime import UTC

from google.cloud import ndb

from comments.store.models import schema


class RateBucketRow(schema.StoredRow):
    """Counts of a subject's recent actions. Only `rate_limits` writes this kind."""

    began = schema.DateTimeProperty(indexed=False, required=True, tzinfo=UTC)
    count = schema.IntegerProperty(indexed=False, default=0)
    recent = schema.BlobProperty(indexed=False)
    ends = schema.DateTimeProperty(tzinfo=UTC)


class EventRow(schema.StoredRow):
    """A change to a comment. Only `outbox` writes this kind."""

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


class MessageRow(schema.StoredRow):
    """A message to an external recipient. Only `message_queue` writes this kind."""

    queue = schema.StringProperty(required=True)
    content = schema.TextProperty(required=True)
    at = schema.DateTimeProperty(indexed=False, tzinfo=UTC)
    due = schema.DateTimeProperty(required=True, tzinfo=UTC)
    since = schema.DateTimeProperty(required=True, tzinfo=UTC)
    waits = schema.BooleanProperty(default=True)
    attempts = schema.IntegerProperty(indexed=False, default=0)
    reason = schema.TextProperty(default="")


class JobRow(schema.StoredRow):
    """The progress of a long job.

    The job continues at `position`, whose format depends on the job.
    """

    position = schema.TextProperty(required=True)


class ImportBatchRow(schema.StoredRow):
    """What one transaction of an import added. Only `import_journal` writes this kind.

    `at` is None while an undo of the import is removing these comments.
    """

    content = schema.TextProperty(required=True)
    at = schema.DateTimeProperty(tzinfo=UTC)


class ImportPartRow(schema.StoredRow):
    """A part of a file that an owner uploaded to import. Only `upload_store` writes this kind."""

    content = schema.TextProperty(required=True)


def rate_bucket_key(name: str) -> ndb.Key:
    """Return the key of a bucket, given its purpose and slot."""
    return schema.RowKey(RateBucketRow, name)


def job_key(name: str) -> ndb.Key:
    """Return the key of a job, under which the job continues after an interruption."""
    return schema.RowKey(JobRow, name)


def import_batch_key(name: str) -> ndb.Key:
    """Return the key of a batch: the site, the import, the batch's number and its first comment."""
    return schema.RowKey(ImportBatchRow, name)


def import_part_key(name: str) -> ndb.Key:
    """Return the key of a part: the site, the upload and the part's number."""
    return schema.RowKey(ImportPartRow, name)


def event_key(event: str) -> ndb.Key:
    """Return the key of an event: the comment's id and the revision that the comment reached."""
    return schema.RowKey(EventRow, event)


class SiteHooksRow(schema.StoredRow):
    """The webhooks of a site. Only `webhook_endpoints` writes this kind."""

    hooks = schema.TextProperty(required=True)


def site_hooks_key(site: str) -> ndb.Key:
    return schema.RowKey(SiteHooksRow, site)


def message_key(message: str) -> ndb.Key:
    """Return the key of a message: the event's id, the channel and the recipient."""
    return schema.RowKey(MessageRow, message)
