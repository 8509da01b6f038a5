"""Define the ownership of kinds: each kind has one module that builds its writes."""

import dataclasses
from typing import Any

from comments import errors
from comments.store.models import schema

# The module or package that may write each kind. Kinds that are not listed may be written by any
# module. A directory has two owners, because it contains a copy of some of the thread's fields.
OWNERS: dict[str, str | frozenset[str]] = {
    "Comment": "tree",
    "Vote": "votes",
    "VotesDue": "votes",
    "VoterNetwork": "votes",
    "Bucket": "compactor",
    "BucketDirectory": frozenset({"compactor", "thread_terms"}),
    "Ranking": "compactor",
    "FollowerList": "set_compaction",
    "FollowerSegment": "set_compaction",
    "FollowerMark": "membership",
    "Subscriber": "subscriptions",
    "Subscription": "subscriptions",
    "Follow": "reader_follows",
    "RateBucket": "rate_limits",
    "Usage": "usage",
    "Counter": "counters",
    "Participation": "counters",
    "Standing": "counters",
    "Category": "counters",
    "Day": "counters",
    "Month": "counters",
    "Appearance": "counters",
    "DeclaredCount": "counters",
    "Event": "outbox",
    "Message": "message_queue",
    "SiteAlias": "site_aliases",
    "ThreadAlias": "thread_aliases",
    "SiteSetup": "site_setup",
    "SiteHooks": "webhook_endpoints",
    "Account": "accounts",
    "Identity": "accounts",
    "Session": "accounts",
    "ModerationSession": "accounts",
    "Passkey": "accounts",
    "SecurityLog": "accounts",
    "Ticket": "accounts",
    "SiteKeys": "accounts",
    "Providers": "accounts",
    "MailServer": "mail_server",
    "AuditEntry": "audit_log",
    "ErasureDue": "retention_marks",
    "Rulebook": "rulebook",
    "AuthorLink": "author_links",
    "Report": "reports",
    "Advice": "classifier_answers",
    "ImportBatch": "import_journal",
    "MovePart": "move_journal",
    "ImportPart": "upload_store",
}
ERASER = "site_erasure"  # May delete rows of every kind, and writes none.


def check(owner: str, kind: str) -> None:
    """Check that an owner may write a kind.

    Raises:
        errors.UnownedWrite: the kind belongs to another owner.
    """
    owners = OWNERS.get(kind, owner)
    if owner != owners and (isinstance(owners, str) or owner not in owners):
        raise errors.UnownedWrite(f"{owner} may not write {kind}")


@dataclasses.dataclass(frozen=True, slots=True)
class Patch:
    """New values for some properties of an entity that exists. `row` contains only these values.

    `stored` is the whole entity, as the current transaction has read it. Emulators need `stored`.
    """

    row: schema.StoredRow
    names: tuple[str, ...]
    stored: Any


@dataclasses.dataclass(frozen=True, slots=True)
class Writes:
    """The entities that an owner puts and deletes in the current transaction.

    `insert` contains entities that must not exist yet. If one of these entities exists, nothing is
    stored and the body runs again; `may_have_run` tells the body to look for the existing entity.
    `patch` changes single properties, so one commit can change many large entities.
    `transactions.apply` refuses entities that belong to other owners.
    """

    owner: str
    put: tuple[schema.StoredRow, ...] = ()
    delete: tuple[schema.RowKey, ...] = ()
    insert: tuple[schema.StoredRow, ...] = ()
    patch: tuple[Patch, ...] = ()

    @property
    def keys(self) -> tuple[schema.RowKey, ...]:
        """Return the keys of all entities that are written or deleted."""
        patched = (patch.row for patch in self.patch)
        return (*(entity.key for entity in (*self.insert, *self.put, *patched)), *self.delete)
