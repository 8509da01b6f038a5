"""Define the kinds and keys for discussions: sites, threads and comments."""

import hashlib
from datetime import UTC

from google.cloud import ndb

from comments.domain import records
from comments.domain.crypto import keyed_hashes
from comments.store.models import schema

# A key name has at most 1,500 bytes (Datastore's limit). Every index row of a comment contains its
# thread's key name, so a thread id is replaced by a digest long before the key name reaches that
# limit.
_LONGEST_PLAIN_ID = 500
# The `source` of a comment whose import was undone. An import that contains it may restore it.
ERASED = ""


class SiteRow(schema.StoredRow):
    """A website. `digits`, `width` and `levels` are the scheme of its sort hashes.

    `levels` is 0 in rows from releases that did not store it. `reshaped` tells whether
    `site rescheme` has set the scheme, so the levels are not compared with SORT_HASH_LEVELS.
    """

    origins = schema.TextProperty(repeated=True)
    digits = schema.TextProperty(required=True)
    width = schema.IntegerProperty(indexed=False, required=True)
    levels = schema.IntegerProperty(indexed=False, default=0)
    reshaped = schema.BooleanProperty(indexed=False, default=False)
    query_keys = schema.TextProperty(repeated=True)
    keep_trailing_slash = schema.BooleanProperty(indexed=False, default=False)
    cdn_seconds = schema.IntegerProperty(indexed=False, default=0)
    freshness = schema.IntegerProperty(indexed=False, default=0)
    categories = schema.TextProperty(repeated=True)
    moderators = schema.TextProperty(repeated=True)
    guard = schema.TextProperty(default="")
    budget = schema.TextProperty(default="")
    turnstile = schema.TextProperty(default="")
    options = schema.TextProperty(default="")
    has_providers = schema.BooleanProperty(indexed=False, default=False)
    created = schema.DateTimeProperty(indexed=False, tzinfo=UTC)


class ThreadRow(schema.StoredRow):
    """A discussion. `child_count` is the counter that numbers the thread's roots.

    `shards` is the number of Counter rows that contain the thread's counters. `filed` counts the
    changes to `categories`. `policy` overrides the site's policy; it is empty if the site's policy
    applies. Readers get `title`, `url` and `categories`. `named_by` is the comment that set them,
    and `named_at` is that comment's creation time. `named_by` is "" until an approved comment sets
    these fields, and None in rows from releases that did not store it (`naming`). `own` lists the
    fields that a moderator set. `scheme` is the scheme of the thread's sort hashes, as JSON
    [digits, width, levels]; it is empty in rows from releases that did not store it, whose threads
    have their site's scheme. `shape` is the number of times that a change of the scheme has moved
    comments of the thread. `active` is about the time of the newest comment (`activity`); it is
    None in rows from releases that did not store it.
    """

    site = schema.StringProperty(required=True)
    thread = schema.TextProperty(required=True)
    title = schema.TextProperty(default="")
    url = schema.TextProperty(default="")
    state = schema.TextProperty(default=records.ThreadState.OPEN.value)
    child_count = schema.IntegerProperty(indexed=False, default=0)
    categories = schema.TextProperty(repeated=True)
    filed = schema.IntegerProperty(indexed=False, default=0)
    shards = schema.IntegerProperty(indexed=False, default=1)
    policy = schema.TextProperty(default="")
    named_by = schema.TextProperty()
    named_at = schema.DateTimeProperty(indexed=False, tzinfo=UTC)
    own = schema.TextProperty(repeated=True)
    pins = schema.TextProperty(repeated=True)
    scheme = schema.TextProperty(default="")
    shape = schema.IntegerProperty(indexed=False, default=0)
    created = schema.DateTimeProperty(tzinfo=UTC)
    active = schema.DateTimeProperty(tzinfo=UTC)


class CommentRow(schema.StoredRow):
    """A comment. `thread` is the key name of the comment's Thread. Only `tree` writes this kind.

    Tree and compaction: `categories` contains the categories in which the comment is counted; they
    equal the thread's categories, except while a change of categories is in progress. `unfolded`
    flags a change that no directory contains yet; `fold_by` is the change's compaction deadline, or
    None for rows without the flag. `shelved` is true if the directory contained the comment as
    listed when the flag was last cleared. `rewrites` is true if a bucket may contain text that this
    change removed. `moved` is true if buckets may contain the comment at a different sort hash.
    `shape` is the thread's `shape` for which the place was computed. `former_slugs` contains the
    slugs of earlier shapes, oldest first.

    Text: `text_revision` is the revision of the text if votes have raised `revision` since then,
    and otherwise None. `brought` is the thread data that was posted with the comment, as JSON
    [title, url, categories]; it is None in rows from releases that did not store it.

    Votes: `up` and `down` are totals. Of these votes, `cast_up` and `cast_down` are stored as Vote
    entities; the others were imported.

    `source` is an imported comment's id in the other system, with the system's name; it is `ERASED`
    after an undo of the import, and None for comments that were posted here.

    Moderation: `rule`, `why` and `reasons` are the reason for the status, `stood` is the previous
    status, `stood_for` its ruling as JSON ("" if nothing gave a reason for it), and `judged` is the
    time of the decision.

    Author: `came_from` is the encrypted mark of a guest's network, for bans (`caller_marks`).
    `origin` is set for a guest's first post with an idempotency key: it is a keyed hash of the
    network and the comment's id (`posting`).
    """

    site = schema.StringProperty(required=True)
    thread = schema.StringProperty(required=True)
    thread_id = schema.TextProperty(required=True)
    sort_hash = schema.StringProperty(required=True)
    level = schema.IntegerProperty(required=True)
    number = schema.IntegerProperty(required=True, indexed=False)
    child_count = schema.IntegerProperty(default=0, indexed=False)
    parent = schema.StringProperty()
    reply_to = schema.TextProperty()
    slug = schema.StringProperty(required=True)
    shape = schema.IntegerProperty(indexed=False, default=0)
    former_slugs = schema.StringProperty(repeated=True)
    author_name = schema.TextProperty(default="")
    author_website = schema.TextProperty(default="")
    author_email = schema.TextProperty(default="")
    author_id = schema.StringProperty(default="")
    by_staff = schema.BooleanProperty(indexed=False, default=False)
    body = schema.TextProperty(default="")
    html = schema.TextProperty(default="")
    renderer = schema.TextProperty(default="")
    status = schema.StringProperty(required=True)
    listed = schema.BooleanProperty(required=True)
    revision = schema.IntegerProperty(default=1)
    unfolded = schema.BooleanProperty(default=False)
    fold_by = schema.DateTimeProperty(tzinfo=UTC)
    shelved = schema.BooleanProperty(indexed=False, default=False)
    rewrites = schema.BooleanProperty(indexed=False, default=False)
    moved = schema.BooleanProperty(indexed=False, default=False)
    created = schema.DateTimeProperty(required=True, tzinfo=UTC)
    edited = schema.DateTimeProperty(indexed=False, tzinfo=UTC)
    changed = schema.DateTimeProperty(tzinfo=UTC)
    text_revision = schema.IntegerProperty(indexed=False)
    score = schema.IntegerProperty(default=0, indexed=False)
    up = schema.IntegerProperty(default=0, indexed=False)
    down = schema.IntegerProperty(default=0, indexed=False)
    categories = schema.TextProperty(repeated=True)
    cast_up = schema.IntegerProperty(default=0, indexed=False)
    cast_down = schema.IntegerProperty(default=0, indexed=False)
    fingerprint = schema.BlobProperty(indexed=False)
    origin = schema.BlobProperty(indexed=False)
    came_from = schema.TextProperty(default="")
    source = schema.TextProperty()
    rule = schema.TextProperty(default="")
    why = schema.TextProperty(default="")
    reasons = schema.TextProperty(default="")
    stood = schema.TextProperty(default="")
    stood_for = schema.TextProperty(default="")
    judged = schema.DateTimeProperty(indexed=False, tzinfo=UTC)
    pinned = schema.BooleanProperty(indexed=False, default=False)
    brought = schema.TextProperty()


def site_key(site: str) -> ndb.Key:
    return schema.RowKey(SiteRow, site)


def thread_key(name: records.ThreadName) -> ndb.Key:
    return schema.RowKey(ThreadRow, thread_key_name(name))


def thread_key_of(key_name: str) -> ndb.Key:
    """Return the key of a thread, given its key name (the property `thread` of a comment)."""
    return schema.RowKey(ThreadRow, key_name)


def thread_key_name(name: records.ThreadName) -> str:
    """Return the key name of a thread.

    Site ids contain neither "/" nor "#", so no two threads share a key name.
    """
    encoded = name.id.encode()
    if len(encoded) > _LONGEST_PLAIN_ID:
        return f"{name.site}#{hashlib.sha256(encoded).hexdigest()}"
    return f"{name.site}/{name.id}"


def comment_key(comment_id: str) -> ndb.Key:
    return schema.RowKey(CommentRow, comment_id)


def comment_id(digest: bytes) -> str:
    """Encode the first 128 bits of a digest or random bytes as a comment id (26 characters)."""
    return keyed_hashes.text(digest)


def is_comment_id(text: str) -> bool:
    """Return whether `text` has the format of a comment id."""
    return len(text) == 26 and all("a" <= c <= "z" or "2" <= c <= "7" for c in text)  # noqa: PLR2004
