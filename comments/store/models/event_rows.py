"""Define the kinds and keys for events, messages, jobs, imports, webhooks and rate limits."""

from comments.store.models import schema


class RateBucketRow(schema.StoredRow):
    """Counts of a subject's recent actions. Only `rate_limits` writes this kind."""

    began = schema.time(indexed=False, required=True)
    count = schema.integer(indexed=False, default=0)
    recent = schema.blob()
    ends = schema.time()


class EventRow(schema.StoredRow):
    """A change to a comment. Only `outbox` writes this kind."""

    kind = schema.text(required=True)
    changes = schema.text(required=True)
    done = schema.texts()
    at = schema.time(indexed=False)
    due = schema.time(required=True)
    since = schema.time()
    attempts = schema.integer(indexed=False, default=0)
    reason = schema.text(default="")
    claimed = schema.time(indexed=False)
    detail = schema.text(default="")


class MessageRow(schema.StoredRow):
    """A message to an external recipient. Only `message_queue` writes this kind."""

    queue = schema.string(required=True)
    content = schema.text(required=True)
    at = schema.time(indexed=False)
    due = schema.time(required=True)
    since = schema.time(required=True)
    waits = schema.boolean(default=True)
    attempts = schema.integer(indexed=False, default=0)
    reason = schema.text(default="")


class MailServerRow(schema.StoredRow):
    """The mail server of this service, as JSON. Only `mail_server` writes this kind."""

    content = schema.text(required=True)


def mail_server_key() -> schema.RowKey:
    """Return the key of the only MailServer row."""
    return schema.RowKey(MailServerRow, "service")


class JobRow(schema.StoredRow):
    """The progress of a long job.

    The job continues at `position`, whose format depends on the job.
    """

    position = schema.text(required=True)


class MovePartRow(schema.StoredRow):
    """Threads that one transaction moves. Only `move_journal` writes this kind."""

    content = schema.text(required=True)


class ImportBatchRow(schema.StoredRow):
    """The comments that one transaction of an import added. Only `import_journal` writes this kind.

    `at` is None while these comments are being removed because the import is undone.
    """

    content = schema.text(required=True)
    at = schema.time()


class ImportPartRow(schema.StoredRow):
    """A part of a file that an owner uploaded to import. Only `upload_store` writes this kind."""

    content = schema.text(required=True)


def rate_bucket_key(name: str) -> schema.RowKey:
    """Return the key of a bucket, given its purpose and slot."""
    return schema.RowKey(RateBucketRow, name)


def job_key(name: str) -> schema.RowKey:
    """Return the key of a job, under which the job continues after an interruption."""
    return schema.RowKey(JobRow, name)


def move_part_key(name: str) -> schema.RowKey:
    return schema.RowKey(MovePartRow, name)


def import_batch_key(name: str) -> schema.RowKey:
    """Return the key of a batch: the site, the import, the batch's number and its first comment."""
    return schema.RowKey(ImportBatchRow, name)


def import_part_key(name: str) -> schema.RowKey:
    """Return the key of a part: the site, the upload and the part's number."""
    return schema.RowKey(ImportPartRow, name)


def event_key(event: str) -> schema.RowKey:
    """Return the key of an event: the comment's id and the revision that the comment reached."""
    return schema.RowKey(EventRow, event)


class SiteHooksRow(schema.StoredRow):
    """The webhooks of a site. Only `webhook_endpoints` writes this kind."""

    hooks = schema.text(required=True)


def site_hooks_key(site: str) -> schema.RowKey:
    return schema.RowKey(SiteHooksRow, site)


def message_key(message: str) -> schema.RowKey:
    """Return the key of a message: the event's id, the channel and the recipient."""
    return schema.RowKey(MessageRow, message)
