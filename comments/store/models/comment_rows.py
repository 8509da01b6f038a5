"""Define the kinds and keys for discussions: sites, threads and comments."""

import hashlib

from comments.domain import categories, records
from comments.domain.crypto import keyed_hashes
from comments.store.models import schema

# A key name has at most 1,500 bytes (Datastore's limit). Every index row of a comment contains its
# thread's key name. A thread id is therefore replaced by a digest long before the key name reaches
# that limit.
_LONGEST_PLAIN_ID = 500
# The `source` of a comment whose import was undone. A later import that contains the comment may
# restore it.
ERASED = ""


def _category_terms(row: "ThreadRow | CommentRow") -> list[str]:
    return categories.terms(row.categories)


class SiteRow(schema.StoredRow):
    """A website. `digits`, `width` and `levels` define the scheme of the site's sort hashes.

    `levels` is 0 in rows from releases that did not store it. `reshaped` is true if `site rescheme`
    has set the scheme. The levels are then not compared with SORT_HASH_LEVELS. `deleted` is the
    time when an owner deleted the site, and None if it is not deleted. `erasing` is the time when
    the erasure of the site's rows began (`site_erasure`). `notices` contains choices of recipients
    of mail, as JSON, and `digest` is the time when the next daily digest is due, or None.
    `copy_of` is the id of the site of which this site is a staging copy, or "".
    """

    origins = schema.texts()
    digits = schema.text(required=True)
    width = schema.integer(indexed=False, required=True)
    levels = schema.integer(indexed=False, default=0)
    reshaped = schema.boolean(indexed=False, default=False)
    query_keys = schema.texts()
    keep_trailing_slash = schema.boolean(indexed=False, default=False)
    ignore_www = schema.boolean(indexed=False, default=False)
    ignore_amp = schema.boolean(indexed=False, default=False)
    cdn_seconds = schema.integer(indexed=False, default=0)
    freshness = schema.integer(indexed=False, default=0)
    categories = schema.texts()
    moderators = schema.texts()
    guard = schema.text(default="")
    budget = schema.text(default="")
    turnstile = schema.text(default="")
    options = schema.text(default="")
    has_providers = schema.boolean(indexed=False, default=False)
    created = schema.time(indexed=False)
    title = schema.text(default="")
    alias = schema.text(default="")
    moves = schema.integer(indexed=False, default=0)
    deleted = schema.time()
    erasing = schema.time(indexed=False)
    notices = schema.text(default="")
    digest = schema.time()
    copy_of = schema.text(default="")


class SiteAliasRow(schema.StoredRow):
    """Another id of a site. Only `site_aliases` writes this kind."""

    site = schema.string(required=True)


class ThreadAliasRow(schema.StoredRow):
    """Another id (`alias`) of a thread: the stored thread's key name and id.

    Only `thread_aliases` writes this kind.
    """

    site = schema.string(required=True)
    alias = schema.text(required=True)
    thread = schema.string(required=True)
    thread_id = schema.text(required=True)


class SiteSetupRow(schema.StoredRow):
    """The progress of a site's setup. Only `site_setup` writes this kind."""

    content = schema.text(required=True)


class ThreadRow(schema.StoredRow):
    """A discussion. `child_count` is the counter that numbers the thread's roots.

    `shards` is the number of Counter rows that contain the thread's counters. `filed` counts the
    changes to `categories`. `category_terms` contains the terms that find these categories
    (`domain/categories`); it is empty in rows from releases that did not store it. `policy`
    overrides the site's policy; it is empty if the site's policy applies. Readers get `title`,
    `url` and `categories`. `named_by` is the comment that set them, and `named_at` is that
    comment's creation time. `named_by` is "" until an approved comment sets these fields, and None
    in rows from releases that did not store it (`naming`). `own` lists the fields that a moderator
    set. `scheme` is the scheme of the thread's sort hashes, as JSON [digits, width, levels]. It is
    empty in rows from releases that did not store it; the threads of these rows have their site's
    scheme. `shape` counts how often a change of the scheme has moved comments of the thread.
    `active` is the approximate time of the newest comment (`activity`); it is None in rows from
    releases that did not store it. `alias` is the id that the thread shows, if that is not the
    stored one (`thread_aliases`).
    """

    site = schema.string(required=True)
    thread = schema.text(required=True)
    alias = schema.text(default="")
    title = schema.text(default="")
    url = schema.text(default="")
    state = schema.text(default=records.ThreadState.OPEN.value)
    child_count = schema.integer(indexed=False, default=0)
    categories = schema.texts()
    category_terms = schema.strings(_category_terms)
    filed = schema.integer(indexed=False, default=0)
    shards = schema.integer(indexed=False, default=1)
    policy = schema.text(default="")
    named_by = schema.text()
    named_at = schema.time(indexed=False)
    own = schema.texts()
    pins = schema.texts()
    scheme = schema.text(default="")
    shape = schema.integer(indexed=False, default=0)
    created = schema.time()
    active = schema.time()


class CommentRow(schema.StoredRow):
    """A comment. `thread` is the key name of the comment's Thread. Only `tree` writes this kind.

    Tree and compaction: `categories` contains the categories in which the comment is counted. They
    equal the thread's categories, except while a change of categories is in progress.
    `category_terms` contains the terms that find them, see `ThreadRow`. `unfolded`
    flags a change that no directory contains yet. `fold_by` is the compaction deadline of this
    change, or None for rows without the flag. `shelved` is true if the directory contained the
    comment as listed when the flag was last cleared. `rewrites` is true if a bucket may contain
    text that the flagged change removed. `moved` is true if buckets may contain the comment at a
    different sort hash. `shape` is the thread's `shape` for which the place was computed.
    `former_slugs` contains the slugs of earlier shapes, oldest first.

    Text: `text_revision` is the revision of the text if votes have raised `revision` since then,
    and otherwise None. `brought` is the thread data that was posted with the comment, as JSON
    [title, url, categories]; it is None in rows from releases that did not store it.

    Votes: `up` and `down` are totals. Of these votes, `cast_up` and `cast_down` are stored as Vote
    entities, and all other votes were imported.

    `source` is an imported comment's id in the other system, with that system's name. It is
    `ERASED` after the import was undone, and None for comments that were posted here.

    Moderation: `rule`, `why` and `reasons` are the reason for the status. `stood` is the previous
    status, and `stood_for` is its ruling as JSON ("" if nothing gave a reason for it). `judged` is
    the time of the decision.

    Author: `came_from` is the encrypted mark of a guest's network, for bans (`caller_marks`).
    `origin` is set for a guest's first post with an idempotency key: it is a keyed hash of the
    network and the comment's id (`posting`).
    """

    site = schema.string(required=True)
    thread = schema.string(required=True)
    thread_id = schema.text(required=True)
    sort_hash = schema.string(required=True)
    level = schema.integer(required=True)
    number = schema.integer(required=True, indexed=False)
    child_count = schema.integer(default=0, indexed=False)
    parent = schema.string()
    reply_to = schema.text()
    slug = schema.string(required=True)
    shape = schema.integer(indexed=False, default=0)
    former_slugs = schema.strings()
    author_name = schema.text(default="")
    author_website = schema.text(default="")
    author_email = schema.text(default="")
    author_id = schema.string(default="")
    by_staff = schema.boolean(indexed=False, default=False)
    body = schema.text(default="")
    html = schema.text(default="")
    renderer = schema.text(default="")
    status = schema.string(required=True)
    listed = schema.boolean(required=True)
    revision = schema.integer(default=1)
    unfolded = schema.boolean(default=False)
    fold_by = schema.time()
    shelved = schema.boolean(indexed=False, default=False)
    rewrites = schema.boolean(indexed=False, default=False)
    moved = schema.boolean(indexed=False, default=False)
    created = schema.time(required=True)
    edited = schema.time(indexed=False)
    edited_by_staff = schema.boolean(indexed=False, default=False)
    changed = schema.time()
    text_revision = schema.integer(indexed=False)
    score = schema.integer(default=0, indexed=False)
    up = schema.integer(default=0, indexed=False)
    down = schema.integer(default=0, indexed=False)
    categories = schema.texts()
    category_terms = schema.strings(_category_terms)
    cast_up = schema.integer(default=0, indexed=False)
    cast_down = schema.integer(default=0, indexed=False)
    fingerprint = schema.blob()
    origin = schema.blob()
    came_from = schema.text(default="")
    source = schema.text()
    rule = schema.text(default="")
    why = schema.text(default="")
    reasons = schema.text(default="")
    stood = schema.text(default="")
    stood_for = schema.text(default="")
    judged = schema.time(indexed=False)
    pinned = schema.boolean(indexed=False, default=False)
    brought = schema.text()


def site_key(site: str) -> schema.RowKey:
    return schema.RowKey(SiteRow, site)


def site_alias_key(alias: str) -> schema.RowKey:
    return schema.RowKey(SiteAliasRow, alias)


def thread_alias_key(name: records.ThreadName) -> schema.RowKey:
    return schema.RowKey(ThreadAliasRow, thread_key_name(name))


def site_setup_key(site: str) -> schema.RowKey:
    return schema.RowKey(SiteSetupRow, site)


def thread_key(name: records.ThreadName) -> schema.RowKey:
    return schema.RowKey(ThreadRow, thread_key_name(name))


def thread_key_of(key_name: str) -> schema.RowKey:
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


def comment_key(comment_id: str) -> schema.RowKey:
    return schema.RowKey(CommentRow, comment_id)


def comment_id(digest: bytes) -> str:
    """Encode the first 128 bits of a digest or random bytes as a comment id (26 characters)."""
    return keyed_hashes.text(digest)


def is_comment_id(text: str) -> bool:
    """Return whether `text` has the format of a comment id."""
    return len(text) == 26 and all("a" <= c <= "z" or "2" <= c <= "7" for c in text)  # noqa: PLR2004
