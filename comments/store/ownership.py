"""Who may write what: each kind has one owner, who hands out what is to be written."""

import dataclasses

from google.cloud import ndb

# Which module may write a kind. Every kind that is not here is written by whoever owns its module.
OWNERS = {
    "Comment": "tree",
    "Vote": "votes",
    "VotesDue": "votes",
    "VoterNetwork": "votes",
    "Bucket": "compactor",
    "BucketDirectory": "compactor",
    "Ranking": "compactor",
    "FollowerList": "follower_compaction",
    "FollowerSegment": "follower_compaction",
    "FollowerMark": "follower_lists",
    "Subscriber": "subscriptions",
    "Subscription": "subscriptions",
    "RateBucket": "rate_limits",
    "Usage": "usage",
    "Counter": "counters",
    "Participation": "counters",
    "Standing": "counters",
    "Category": "counters",
    "Day": "counters",
    "Appearance": "counters",
    "Event": "outbox",
    "Message": "message_queue",
    "SiteHooks": "webhook_endpoints",
    "Account": "accounts",
    "Identity": "accounts",
    "Session": "accounts",
    "Ticket": "accounts",
    "SiteKeys": "accounts",
    "Providers": "accounts",
    "AuditEntry": "audit_log",
    "ErasureDue": "retention_marks",
    "Rulebook": "rulebook",
    "Report": "reports",
    "Advice": "classifier_answers",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Writes:
    """What an owner wants put and deleted in the current transaction.

    `insert` is what must not be there yet: if it is, nothing is stored and the body runs again,
    which can tell that by `may_have_run` and look. `transactions.apply` refuses what belongs to
    another owner.
    """

    owner: str
    put: tuple[ndb.Model, ...] = ()
    delete: tuple[ndb.Key, ...] = ()
    insert: tuple[ndb.Model, ...] = ()

    @property
    def keys(self) -> tuple[ndb.Key, ...]:
        """The keys of all entities touched."""
        return (*(entity.key for entity in (*self.insert, *self.put)), *self.delete)
