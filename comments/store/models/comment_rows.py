"""Sites, threads and comments: the kinds that a discussion consists of, and their keys."""

import hashlib
from datetime import UTC

from google.cloud import ndb

from comments.domain import records
from comments.domain.crypto import keyed_hashes

# Key names hold 1,500 bytes (Datastore's limit); the thread's name is also in every index row of
# its comments, so long ids become a digest well before that.
_LONGEST_PLAIN_ID = 500


class Site(ndb.Model):
    """One website and the scheme its hashes are written in."""

    origins = ndb.TextProperty(repeated=True)
    digits = ndb.TextProperty(required=True)
    width = ndb.IntegerProperty(indexed=False, required=True)
    query_keys = ndb.TextProperty(repeated=True)
    keep_trailing_slash = ndb.BooleanProperty(indexed=False, default=False)
    cdn_seconds = ndb.IntegerProperty(indexed=False, default=0)
    freshness = ndb.IntegerProperty(indexed=False, default=0)
    categories = ndb.TextProperty(repeated=True)
    moderators = ndb.TextProperty(repeated=True)
    guard = ndb.TextProperty(default="")
    budget = ndb.TextProperty(default="")
    turnstile = ndb.TextProperty(default="")
    created = ndb.DateTimeProperty(indexed=False, tzinfo=UTC)


class Thread(ndb.Model):
    """A discussion. `child_count` is the counter its roots are numbered from.

    `shard_choice` is over how many Counter rows its counters are spread. `filed` is how often its
    `categories` were changed. `policy` goes before the site's; empty for that one. `title`, `url`
    and `categories` are what readers get. `named_by` is the comment that brought them and
    `named_at` when that was created; "" while no approved comment did, None in rows of releases
    that did not store it (`naming`). `own` lists the fields that a moderator set.
    """

    site = ndb.StringProperty(required=True)
    thread = ndb.TextProperty(required=True)
    title = ndb.TextProperty(default="")
    url = ndb.TextProperty(default="")
    state = ndb.TextProperty(default=records.ThreadState.OPEN.value)
    child_count = ndb.IntegerProperty(indexed=False, default=0)
    categories = ndb.TextProperty(repeated=True)
    filed = ndb.IntegerProperty(indexed=False, default=0)
    shards = ndb.IntegerProperty(indexed=False, default=1)
    policy = ndb.TextProperty(default="")
    named_by = ndb.TextProperty()
    named_at = ndb.DateTimeProperty(indexed=False, tzinfo=UTC)
    own = ndb.TextProperty(repeated=True)
    created = ndb.DateTimeProperty(tzinfo=UTC)


class Comment(ndb.Model):
    """One comment. `thread` is its Thread's key name. Written by `tree` only.

    `categories` are those it is counted in: its thread's, but while a change of them goes on.
    `text_revision` is the revision its text came with, where votes have raised it since; else it
    is not there. Of the votes `up` and `down`, `cast_up` and `cast_down` are Vote entities; the
    others were imported. `rule` and `why` say how it came to its status, `stood` what it was
    before, and `judged` when that was decided. `fold_by` is when a folding is to have taken in a
    row that is `unfolded`; None for others. `came_from` is the mark of a guest's network,
    sealed, for bans (`caller_marks`). `origin` stands for the network of a newcomer's post
    that may be repeated: a keyed hash that also covers the comment (`posting`). `brought` is
    what it said of its thread, as JSON [title, url, categories]; None in rows of releases that did
    not store it.
    """

    site = ndb.StringProperty(required=True)
    thread = ndb.StringProperty(required=True)
    thread_id = ndb.TextProperty(required=True)
    sort_hash = ndb.StringProperty(required=True)
    level = ndb.IntegerProperty(required=True)
    number = ndb.IntegerProperty(required=True, indexed=False)
    child_count = ndb.IntegerProperty(default=0, indexed=False)
    parent = ndb.StringProperty()
    reply_to = ndb.TextProperty()
    slug = ndb.StringProperty(required=True)
    author_name = ndb.TextProperty(default="")
    author_website = ndb.TextProperty(default="")
    author_email = ndb.TextProperty(default="")
    author_id = ndb.StringProperty(default="")
    by_staff = ndb.BooleanProperty(indexed=False, default=False)
    body = ndb.TextProperty(default="")
    html = ndb.TextProperty(default="")
    renderer = ndb.TextProperty(default="")
    status = ndb.StringProperty(required=True)
    listed = ndb.BooleanProperty(required=True)
    revision = ndb.IntegerProperty(default=1)
    unfolded = ndb.BooleanProperty(default=False)
    fold_by = ndb.DateTimeProperty(tzinfo=UTC)
    shelved = ndb.BooleanProperty(indexed=False, default=False)
    rewrites = ndb.BooleanProperty(indexed=False, default=False)
    moved = ndb.BooleanProperty(indexed=False, default=False)
    created = ndb.DateTimeProperty(required=True, tzinfo=UTC)
    edited = ndb.DateTimeProperty(indexed=False, tzinfo=UTC)
    changed = ndb.DateTimeProperty(tzinfo=UTC)
    text_revision = ndb.IntegerProperty(indexed=False)
    score = ndb.IntegerProperty(default=0, indexed=False)
    up = ndb.IntegerProperty(default=0, indexed=False)
    down = ndb.IntegerProperty(default=0, indexed=False)
    categories = ndb.TextProperty(repeated=True)
    cast_up = ndb.IntegerProperty(default=0, indexed=False)
    cast_down = ndb.IntegerProperty(default=0, indexed=False)
    fingerprint = ndb.BlobProperty(indexed=False)
    origin = ndb.BlobProperty(indexed=False)
    came_from = ndb.TextProperty(default="")
    source = ndb.TextProperty()
    rule = ndb.TextProperty(default="")
    why = ndb.TextProperty(default="")
    stood = ndb.TextProperty(default="")
    judged = ndb.DateTimeProperty(indexed=False, tzinfo=UTC)
    pinned = ndb.BooleanProperty(indexed=False, default=False)
    brought = ndb.TextProperty()


def author_name(site: str, author: str) -> str:
    """An author of a website as one text. Site ids hold no "/"."""
    return f"{site}/{author}"


def site_key(site: str) -> ndb.Key:
    """The key of a site."""
    return ndb.Key(Site, site)


def thread_key(name: records.ThreadName) -> ndb.Key:
    """The key of a thread."""
    return ndb.Key(Thread, thread_key_name(name))


def thread_key_of(key_name: str) -> ndb.Key:
    """The key of the thread that comments name by this key name."""
    return ndb.Key(Thread, key_name)


def thread_key_name(name: records.ThreadName) -> str:
    """The key name of a thread. Site ids hold neither "/" nor "#", so no two threads share one."""
    encoded = name.id.encode()
    if len(encoded) > _LONGEST_PLAIN_ID:
        return f"{name.site}#{hashlib.sha256(encoded).hexdigest()}"
    return f"{name.site}/{name.id}"


def comment_key(comment_id: str) -> ndb.Key:
    """The key of a comment."""
    return ndb.Key(Comment, comment_id)


def comment_id(digest: bytes) -> str:
    """Write the first 128 bits of a digest, or of randomness, as a comment id (26 characters)."""
    return keyed_hashes.text(digest)


def is_comment_id(text: str) -> bool:
    """Whether `text` has the shape of a comment id; anything else cannot be one."""
    return len(text) == 26 and all("a" <= c <= "z" or "2" <= c <= "7" for c in text)  # noqa: PLR2004
