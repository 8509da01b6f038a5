"""The stored kinds, and how a stored row becomes a record.

Owns property names, key shapes and what is indexed; DESIGN of the rows in docs/architecture.md.
Property names, key names and the meaning of stored text are for ever: golden tests hold them.
Only what a query filters or orders by is indexed, because each indexed property costs a row.

    Site      key: site id
    Thread    key: "{site}/{thread id}", or "{site}#{sha-256, hex}" for ids above 500 bytes
    BucketDirectory, Bucket, Ranking
              keys: "current", attempt and number, and attempt, below the thread's key
    FollowerList
              key: what the list is about
    FollowerMark, FollowerSegment
              keys below the list's: generation and id; generation, attempt and number.
              A generation is ten digits, so that the order of names is that of numbers
    Subscriber, Subscription
              keys: digest of an address; kind and digest of what it is about, below it
    RateBucket
              key: purpose and slot
    Counter   key: "thread/{thread's key name}#{shard}", or "site/{site id}#0"
    Standing  key: "{site id}/{author's id}"
    Category  key: "{site id}/{category}"
    Day       key: "{site id}/{category, or nothing}/{date}"
    Appearance
              key: "{site id}/{category, or nothing}/{date, or nothing}/{author's id}"
    Event     key: "{comment id}.{revision}"
    Message   key: "{event id}/{channel}/{recipient}"
    Vote, VoterNetwork
              keys below the comment's: the voter's id; a keyed hash
    VotesDue  key: comment id
    SiteHooks key: site id
    Job       key: what is done, and to which site
    Participation
              key: the author's id, below the thread's key
    Comment   key: 128 bits, base32, lower case; never an automatic id, because a lost answer
              would make NDB's retry a second comment
"""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from google.cloud import ndb

from comments import counters, digests, records

# Key names hold 1,500 bytes (Datastore's limit); the thread's name is also in every index row of
# its comments, so long ids become a digest well before that.
_LONGEST_PLAIN_ID = 500
_GENERATION = 10  # digits
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Site(ndb.Model):
    """One website and the scheme its hashes are written in."""

    origins = ndb.TextProperty(repeated=True)
    digits = ndb.TextProperty(required=True)
    width = ndb.IntegerProperty(indexed=False, required=True)
    query_keys = ndb.TextProperty(repeated=True)
    keep_trailing_slash = ndb.BooleanProperty(indexed=False, default=False)
    cdn_seconds = ndb.IntegerProperty(indexed=False, default=0)
    categories = ndb.TextProperty(repeated=True)
    moderators = ndb.TextProperty(repeated=True)
    created = ndb.DateTimeProperty(indexed=False, tzinfo=UTC)


class Thread(ndb.Model):
    """A discussion. `child_count` is the counter its roots are numbered from.

    `shards` is over how many Counter rows its counters are spread. `filed` is how often its
    `categories` were changed.
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
    created = ndb.DateTimeProperty(tzinfo=UTC)


class Comment(ndb.Model):
    """One comment. `thread` is its Thread's key name. Written by `tree` only.

    `categories` are those it is counted in: its thread's, but while a change of them goes on.
    `text_revision` is the revision its text came with, where votes have raised it since; else it
    is not there. Of the votes `up` and `down`, `cast_up` and `cast_down` are Vote entities; the
    others were imported.
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
    body = ndb.TextProperty(default="")
    html = ndb.TextProperty(default="")
    renderer = ndb.TextProperty(default="")
    status = ndb.StringProperty(required=True)
    listed = ndb.BooleanProperty(required=True)
    revision = ndb.IntegerProperty(default=1)
    unfolded = ndb.BooleanProperty(default=False)
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
    source = ndb.TextProperty()


class BucketDirectory(ndb.Model):
    """The directory of a thread's buckets. Written by `folding` only, drawn in `buckets`.

    `version` is the token of the attempt that wrote it. A directory too large for one entity goes
    on in Bucket entities, `parts`. `head` is the thread's first page, drawn in `heads`; rows of
    older releases have none. `due` is when the first of the rankings that it replaced may go.
    """

    version = ndb.TextProperty(required=True)
    content = ndb.BlobProperty(indexed=False)
    parts = ndb.TextProperty(repeated=True)
    head = ndb.BlobProperty(indexed=False)
    due = ndb.DateTimeProperty(tzinfo=UTC)


class Bucket(ndb.Model):
    """A run of a thread as readers get it, written once. Drawn in `buckets`."""

    content = ndb.BlobProperty(indexed=False)


class Ranking(ndb.Model):
    """Discussions by their votes, written once. Drawn in `ranking`."""

    content = ndb.BlobProperty(indexed=False)


class FollowerList(ndb.Model):
    """Where a large list of ids stands. Written by `compaction` only, drawn in `idsets`.

    Marks of generations up to `folded` are in the segments that `content` names; new ones are
    written for `generation`. `version` is the token of the attempt that wrote the content.
    """

    version = ndb.TextProperty(default="")
    generation = ndb.IntegerProperty(indexed=False, required=True)
    folded = ndb.IntegerProperty(indexed=False, required=True)
    content = ndb.BlobProperty(indexed=False)


class FollowerMark(ndb.Model):
    """One id that joined a list or left it. Written by `followers` only.

    `entry` is generation, sign and list, so that one query without entities gives the ids that
    joined in a generation, in order. `asks` marks ask for a folding.
    """

    entry = ndb.StringProperty(required=True)
    asks = ndb.BooleanProperty(default=False)


class FollowerSegment(ndb.Model):
    """A part of a list, written once by `compaction`. Drawn in `idsets`."""

    content = ndb.BlobProperty(indexed=False)


def follower_list_key(name: records.ListName) -> ndb.Key:
    """The key of a list."""
    return ndb.Key(FollowerList, name.text)


def follower_mark_key(name: records.ListName, generation: int, follower: str) -> ndb.Key:
    """The key of the mark of an id in a generation. Without an id: before all of them."""
    return ndb.Key(FollowerMark, f"{generation:010d}{follower}", parent=follower_list_key(name))


def follower_mark_entry(name: records.ListName, generation: int, *, follows: bool) -> str:
    """What all marks of a list, a generation and a sign share."""
    return f"{generation:010d}{'+' if follows else '-'}{name.text}"


def follower_segment_key(name: records.ListName, key: str) -> ndb.Key:
    """The key of a part of a list; `key` is generation, attempt and number."""
    return ndb.Key(FollowerSegment, key, parent=follower_list_key(name))


def generation_of(key: str) -> int:
    """The generation that the name of a mark's or a segment's key begins with."""
    return int(key[:_GENERATION])


def follower_of(key: str) -> str:
    """The id that the name of a mark's key ends with."""
    return key[_GENERATION:]


class Subscriber(ndb.Model):
    """A confirmed mail address, sealed. Written by `subscriptions` only, and drawn there."""

    address = ndb.TextProperty(required=True)
    since = ndb.DateTimeProperty(indexed=False, tzinfo=UTC)
    day = ndb.TextProperty(default="")
    sent = ndb.IntegerProperty(indexed=False, default=0)


class Subscription(ndb.Model):
    """One thing that a subscriber is told of. Written by `subscriptions` only, and drawn there."""

    site = ndb.TextProperty(required=True)
    owner = ndb.StringProperty()
    list = ndb.TextProperty(default="")
    since = ndb.DateTimeProperty(indexed=False, tzinfo=UTC)


class RateBucket(ndb.Model):
    """How often something happened lately. Written by `limits` only, and drawn there."""

    began = ndb.DateTimeProperty(indexed=False, required=True, tzinfo=UTC)
    count = ndb.IntegerProperty(indexed=False, default=0)


class Counter(ndb.Model):
    """One shard of the numbers of a scope. Written by `tallies` only.

    `numbers` is a JSON object, names to numbers. `shards` tells readers how many there are; it
    stands in the first, as `mended` does, how often a recount added to it. `site` is whose thread
    it counts, empty for the site's own numbers.
    """

    scope = ndb.StringProperty(required=True)
    site = ndb.StringProperty(default="")
    shards = ndb.IntegerProperty(default=1)
    mended = ndb.IntegerProperty(indexed=False, default=0)
    numbers = ndb.TextProperty(default="")


class Participation(ndb.Model):
    """An author in a thread. Written by `tallies` only. `author` is `author_name`."""

    author = ndb.StringProperty(required=True)
    numbers = ndb.TextProperty(default="")


class Standing(ndb.Model):
    """An author on a website. Written by `tallies` only. `score` is that of `numbers`.

    `takes_part` while he has an approved comment there. `alias` orders those of one score, as the
    id would, which no cursor may show. `comment` is one of his, to tell his name by.
    """

    site = ndb.StringProperty(required=True)
    score = ndb.IntegerProperty(default=0)
    takes_part = ndb.BooleanProperty(default=False)
    alias = ndb.StringProperty(default="")
    comment = ndb.TextProperty(default="")
    numbers = ndb.TextProperty(default="")


class Category(ndb.Model):
    """The numbers of a category of a website. Written by `tallies` only."""

    numbers = ndb.TextProperty(default="")


class Day(ndb.Model):
    """The numbers of a day on a website or in a category of it. Written by `tallies` only.

    `entry` is "{site id}/{date}/{category, or nothing}": the order of a report over categories.
    """

    entry = ndb.StringProperty(required=True)
    numbers = ndb.TextProperty(default="")


class Appearance(ndb.Model):
    """An author with approved comments in a category or on a day. Written by `tallies` only.

    `author` is `author_name`; `day` a date, or empty for ever.
    """

    author = ndb.StringProperty(required=True)
    day = ndb.StringProperty(default="")
    numbers = ndb.TextProperty(default="")


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


class Vote(ndb.Model):
    """One voter's vote on one comment. Written by `votes` only, and drawn there."""

    value = ndb.IntegerProperty(indexed=False, required=True)
    side = ndb.StringProperty(required=True)
    own = ndb.StringProperty(required=True)
    thread = ndb.StringProperty(required=True)


class VotesDue(ndb.Model):
    """Says that a comment has votes its row does not count. Written by `votes` only."""

    thread = ndb.StringProperty(required=True)
    due = ndb.DateTimeProperty(required=True, tzinfo=UTC)


class VoterNetwork(ndb.Model):
    """The voters of one network on one comment. Written by `votes` only, and drawn there."""

    voters = ndb.TextProperty(repeated=True)
    due = ndb.DateTimeProperty(required=True, tzinfo=UTC)


def vote_key(comment_id: str, voter: str) -> ndb.Key:
    """The key of a voter's vote on a comment."""
    return ndb.Key(Vote, voter, parent=comment_key(comment_id))


def key_of(message: Any) -> ndb.Key:
    """The key of an entity that was read as a message, at the end of its path."""
    return ndb.Key(*(part for each in message.key.path for part in (each.kind, each.name)))


def votes_due_key(comment_id: str) -> ndb.Key:
    """The key of what says that votes on a comment are to be counted."""
    return ndb.Key(VotesDue, comment_id)


def voter_network_key(comment_id: str, digest: str) -> ndb.Key:
    """The key of the voters of a network, which `digest` stands for, on a comment."""
    return ndb.Key(VoterNetwork, digest, parent=comment_key(comment_id))


def subscriber_key(subscriber: str) -> ndb.Key:
    """The key of a subscriber."""
    return ndb.Key(Subscriber, subscriber)


def subscription_key(subscriber: str, name: str) -> ndb.Key:
    """The key of what a subscriber is told of."""
    return ndb.Key(Subscription, name, parent=subscriber_key(subscriber))


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
    """Where a site's owner wants to be told. Written by `hooks` only, and drawn there."""

    hooks = ndb.TextProperty(required=True)


def site_hooks_key(site: str) -> ndb.Key:
    """The key of a site's hooks."""
    return ndb.Key(SiteHooks, site)


def message_key(message: str) -> ndb.Key:
    """The key of a message: the event's id and whom it is for."""
    return ndb.Key(Message, message)


def site_counter_key(site: str) -> ndb.Key:
    """The key of a website's counters."""
    return ndb.Key(Counter, f"site/{site}#0")


def standing_key(site: str, author: str) -> ndb.Key:
    """The key of the row of an author on a website."""
    return ndb.Key(Standing, author_name(site, author))


def standing_alias(site: str, author: str) -> str:
    """What stands for an author of a website where his id must not be seen."""
    return hashlib.sha256(author_name(site, author).encode()).hexdigest()[:32]


def statistics_key(scope: counters.Scope) -> ndb.Key:
    """The key of the row of a category, of a day, or of an author there."""
    if scope.author:
        parts = (scope.place, scope.category, scope.day, scope.author)
        return ndb.Key(Appearance, "/".join(parts))
    if scope.day:
        return ndb.Key(Day, f"{scope.place}/{scope.category}/{scope.day}")
    return ndb.Key(Category, f"{scope.place}/{scope.category}")


def day_entry(scope: counters.Scope) -> str:
    """A day's place in a report over all categories of a website."""
    return f"{scope.place}/{scope.day}/{scope.category}"


def statistics_scope(kind: str, name: str) -> counters.Scope:
    """What a row of those kinds counts, by its key's name. Site ids and categories hold no "/"."""
    if kind == "Category":
        return counters.category_scope(*name.split("/", 1))
    if kind == "Day":
        site, category, day = name.split("/", 2)
        return counters.day_scope(site, day, category)
    site, category, day, author = name.split("/", 3)
    if not day:
        return counters.category_scope(site, category, author)
    return counters.day_scope(site, day, category, author)


def thread_counter_key(name: records.ThreadName, shard: int) -> ndb.Key:
    """The key of a shard of a thread's counters."""
    return thread_counter_key_of(thread_key_name(name), shard)


def thread_counter_key_of(thread: str, shard: int) -> ndb.Key:
    """The same, by the thread's key name."""
    return ndb.Key(Counter, f"thread/{thread}#{shard}")


def participation_key(name: records.ThreadName, author: str) -> ndb.Key:
    """The key of the row of an author in a thread."""
    return ndb.Key(Participation, author, parent=thread_key(name))


def author_name(site: str, author: str) -> str:
    """An author of a website as one text. Site ids hold no "/"."""
    return f"{site}/{author}"


def ranking_key(name: records.ThreadName, key: str) -> ndb.Key:
    """The key of a ranking; `key` is its attempt."""
    return ndb.Key(Ranking, key, parent=thread_key(name))


def directory_path(name: records.ThreadName) -> tuple[tuple[str, str], ...]:
    """The path of a thread's directory, for those who read it without NDB."""
    return ("Thread", thread_key_name(name)), ("BucketDirectory", "current")


def directory_key(name: records.ThreadName) -> ndb.Key:
    """The key of a thread's directory."""
    return ndb.Key(BucketDirectory, "current", parent=thread_key(name))


def bucket_path(name: records.ThreadName, key: str) -> tuple[tuple[str, str], ...]:
    """The path of a bucket; `key` is its attempt and number."""
    return ("Thread", thread_key_name(name)), ("Bucket", key)


def bucket_key(name: records.ThreadName, key: str) -> ndb.Key:
    """The key of a bucket."""
    return ndb.Key(Bucket, key, parent=thread_key(name))


def content(message: Any) -> bytes:
    """The content of a directory or a bucket that was read as a message."""
    stored: bytes = message.properties["content"].blob_value
    return stored


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
    return digests.text(digest)


def comment_state(row: Comment) -> counters.State:
    """A stored comment as far as counters know it."""
    return counters.State(
        site=row.site,
        thread=row.thread,
        author=row.author_id,
        status=row.status,
        listed=row.listed,
        up=row.up,
        down=row.down,
        categories=tuple(row.categories),
        day=row.created.date().isoformat(),
    )


def state_from_message(entity: Any) -> counters.State:
    """A comment as counters know it, straight from its protobuf message."""
    values = entity.properties
    return counters.State(
        site=values["site"].string_value,
        thread=values["thread"].string_value,
        author=values["author_id"].string_value,
        status=values["status"].string_value,
        listed=values["listed"].boolean_value,
        up=values["up"].integer_value,
        down=values["down"].integer_value,
        categories=texts(values["categories"]),
        day=_time(values["created"]).date().isoformat(),
    )


def texts(value: Any) -> tuple[str, ...]:
    """The texts of a repeated property of a message."""
    return tuple(each.string_value for each in value.array_value.values)


def parent_id(row: Comment) -> str | None:
    """The id of a comment's parent in the tree; None for a root."""
    parent: str | None = row.parent
    return parent


def is_comment_id(text: str) -> bool:
    """Whether `text` has the shape of a comment id; anything else cannot be one."""
    return len(text) == 26 and all("a" <= c <= "z" or "2" <= c <= "7" for c in text)  # noqa: PLR2004


def site_record(row: Site) -> records.Site:
    """A stored site as a record."""
    return records.Site(
        id=row.key.id(),
        origins=tuple(row.origins),
        digits=row.digits,
        width=row.width,
        query_keys=tuple(row.query_keys),
        keep_trailing_slash=bool(row.keep_trailing_slash),
        cdn_seconds=row.cdn_seconds or 0,
        categories=tuple(row.categories),
        moderators=tuple(row.moderators),
    )


def thread_record(row: Thread) -> records.Thread:
    """A stored thread as a record."""
    return records.Thread(
        name=records.ThreadName(row.site, row.thread),
        title=row.title,
        url=row.url,
        state=records.ThreadState(row.state),
        child_count=row.child_count,
        categories=tuple(row.categories),
    )


def comment_record(row: Comment) -> records.Comment:
    """A stored comment as a record."""
    edited: datetime | None = row.edited
    changed: datetime | None = row.changed
    return records.Comment(
        id=row.key.id(),
        site=row.site,
        thread=row.thread_id,
        sort_hash=row.sort_hash,
        level=row.level,
        number=row.number,
        child_count=row.child_count,
        parent=row.parent,
        reply_to=row.reply_to,
        slug=row.slug,
        author=records.Author(row.author_name, row.author_website, row.author_email, row.author_id),
        body=row.body,
        html=row.html,
        status=records.Status(row.status),
        listed=row.listed,
        revision=row.revision,
        created=plain(row.created),
        edited=None if edited is None else plain(edited),
        changed=None if changed is None else plain(changed),
        score=row.score,
        up=row.up,
        down=row.down,
        text_revision=row.text_revision or row.revision,
    )


def comment_from_message(entity: Any) -> records.Comment:
    """A comment as a record, straight from its protobuf message (the bulk read path)."""
    values = entity.properties
    edited, changed = values["edited"], values["changed"]
    return records.Comment(
        id=entity.key.path[-1].name,
        site=values["site"].string_value,
        thread=values["thread_id"].string_value,
        sort_hash=values["sort_hash"].string_value,
        level=values["level"].integer_value,
        number=values["number"].integer_value,
        child_count=values["child_count"].integer_value,
        parent=values["parent"].string_value or None,
        reply_to=values["reply_to"].string_value or None,
        slug=values["slug"].string_value,
        author=records.Author(
            values["author_name"].string_value,
            values["author_website"].string_value,
            values["author_email"].string_value,
            values["author_id"].string_value,
        ),
        body=values["body"].string_value,
        html=values["html"].string_value,
        status=records.Status(values["status"].string_value),
        listed=values["listed"].boolean_value,
        revision=values["revision"].integer_value,
        created=_time(values["created"]),
        edited=_time(edited) if edited.HasField("timestamp_value") else None,
        changed=_time(changed) if changed.HasField("timestamp_value") else None,
        score=values["score"].integer_value,
        up=values["up"].integer_value,
        down=values["down"].integer_value,
        text_revision=values["text_revision"].integer_value or values["revision"].integer_value,
    )


def plain(moment: datetime) -> datetime:
    """The moment without the nanoseconds class that NDB reads it as, which is no JSON value."""
    return datetime.combine(moment.date(), moment.time(), UTC)


def plain_or_none(moment: datetime | None) -> datetime | None:
    """The moment as `plain` makes it; None for none."""
    return None if moment is None else plain(moment)


def projected_time(value: Any) -> datetime | None:
    """A moment as projections hold it, where it is microseconds; None for none."""
    if value.WhichOneof("value_type") != "integer_value":
        return None
    return _EPOCH + timedelta(microseconds=value.integer_value)


def _time(value: Any) -> datetime:
    moment: datetime = value.timestamp_value.ToDatetime(UTC)
    return moment
