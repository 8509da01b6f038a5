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
    Usage     key: "{site id, or *}/{date}"
    Vote, VoterNetwork
              keys below the comment's: the voter's id; a keyed hash
    VotesDue  key: comment id
    SiteHooks key: site id
    Account   key: 128 random bits, base32, lower case
    Identity  key: "{provider}:{who, there}", see accounts/identities.py
    Session   key: digest of its token, below its account's
    Ticket    key: digest of its token
    SiteKeys  key: site id
    Providers key: "service", the only one
    AuditEntry
              key: 128 bits of randomness, base32, made once for each decision
    ErasureDue
              key: comment id
    Rulebook  key: site id
    Report    key: comment id
    Advice    key: comment id
    Job       key: what is done, to which site, and of an import the system and the file
    Participation
              key: the author's id, below the thread's key
    Comment   key: 128 bits, base32, lower case; never an automatic id, because a lost answer
              would make NDB's retry a second comment
"""

from comments.models.ballots import (
    Vote,
    VoterNetwork,
    VotesDue,
    key_of,
    vote_key,
    voter_network_key,
    votes_due_key,
)
from comments.models.buckets import (
    Bucket,
    BucketDirectory,
    Ranking,
    bucket_key,
    bucket_path,
    content,
    directory_key,
    directory_path,
    ranking_key,
)
from comments.models.decisions import (
    Advice,
    AuditEntry,
    ErasureDue,
    Report,
    Rulebook,
    advice_key,
    audit_key,
    audit_record,
    erasure_key,
    report_key,
    rulebook_key,
)
from comments.models.events import (
    Event,
    Job,
    Message,
    RateBucket,
    SiteHooks,
    event_key,
    job_key,
    message_key,
    rate_bucket_key,
    site_hooks_key,
)
from comments.models.lists import (
    FollowerList,
    FollowerMark,
    FollowerSegment,
    Subscriber,
    Subscription,
    follower_list_key,
    follower_mark_entry,
    follower_mark_key,
    follower_of,
    follower_segment_key,
    generation_of,
    subscriber_key,
    subscription_key,
)
from comments.models.numbers import (
    Appearance,
    Category,
    Counter,
    Day,
    Participation,
    Standing,
    Usage,
    day_entry,
    participation_key,
    site_counter_key,
    standing_alias,
    standing_key,
    statistics_key,
    statistics_scope,
    thread_counter_key,
    thread_counter_key_of,
    thread_counter_name,
    usage_key,
)
from comments.models.people import (
    Account,
    Identity,
    Providers,
    Session,
    SiteKeys,
    Ticket,
    account_key,
    identity_key,
    providers_key,
    session_key,
    site_keys_key,
    ticket_key,
)
from comments.models.rows import (
    case_from_message,
    case_record,
    comment_from_message,
    comment_record,
    comment_state,
    parent_id,
    site_record,
    state_from_message,
    texts,
    thread_record,
)
from comments.models.times import (
    plain,
    plain_or_none,
    projected_time,
    stored_time,
)
from comments.models.trees import (
    Comment,
    Site,
    Thread,
    author_name,
    comment_id,
    comment_key,
    is_comment_id,
    site_key,
    thread_key,
    thread_key_name,
    thread_key_of,
)

__all__ = [
    "Account",
    "Advice",
    "Appearance",
    "AuditEntry",
    "Bucket",
    "BucketDirectory",
    "Category",
    "Comment",
    "Counter",
    "Day",
    "ErasureDue",
    "Event",
    "FollowerList",
    "FollowerMark",
    "FollowerSegment",
    "Identity",
    "Job",
    "Message",
    "Participation",
    "Providers",
    "Ranking",
    "RateBucket",
    "Report",
    "Rulebook",
    "Session",
    "Site",
    "SiteHooks",
    "SiteKeys",
    "Standing",
    "Subscriber",
    "Subscription",
    "Thread",
    "Ticket",
    "Usage",
    "Vote",
    "VoterNetwork",
    "VotesDue",
    "account_key",
    "advice_key",
    "audit_key",
    "audit_record",
    "author_name",
    "bucket_key",
    "bucket_path",
    "case_from_message",
    "case_record",
    "comment_from_message",
    "comment_id",
    "comment_key",
    "comment_record",
    "comment_state",
    "content",
    "day_entry",
    "directory_key",
    "directory_path",
    "erasure_key",
    "event_key",
    "follower_list_key",
    "follower_mark_entry",
    "follower_mark_key",
    "follower_of",
    "follower_segment_key",
    "generation_of",
    "identity_key",
    "is_comment_id",
    "job_key",
    "key_of",
    "message_key",
    "parent_id",
    "participation_key",
    "plain",
    "plain_or_none",
    "projected_time",
    "providers_key",
    "ranking_key",
    "rate_bucket_key",
    "report_key",
    "rulebook_key",
    "session_key",
    "site_counter_key",
    "site_hooks_key",
    "site_key",
    "site_keys_key",
    "site_record",
    "standing_alias",
    "standing_key",
    "state_from_message",
    "statistics_key",
    "statistics_scope",
    "stored_time",
    "subscriber_key",
    "subscription_key",
    "texts",
    "thread_counter_key",
    "thread_counter_key_of",
    "thread_counter_name",
    "thread_key",
    "thread_key_name",
    "thread_key_of",
    "thread_record",
    "ticket_key",
    "usage_key",
    "vote_key",
    "voter_network_key",
    "votes_due_key",
]
