"""Make rows of every kind for a website, with the keys that the product gives them."""

import functools
import hashlib
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import msgspec

from comments.domain import records
from comments.domain.counters import counting
from comments.events import mail_jobs, message_queue, outbox, webhook_endpoints
from comments.moderation.classifiers import classifier_answers
from comments.notifications import inbox, thread_followers
from comments.store import ownership, transactions
from comments.store.models import (
    account_rows,
    bucket_rows,
    comment_rows,
    counter_rows,
    declared_rows,
    event_rows,
    follow_rows,
    moderation_rows,
    schema,
    set_rows,
    subscription_rows,
    vote_rows,
)
from comments.transfer.importing import import_journal
from tests.support.threads import sample_threads

NOW = sample_threads.START
ONLY = frozenset({"Providers", "MailServer"})  # Kinds with one row for all sites
_FILLED = {
    "string_value": "x", "integer_value": 0, "boolean_value": False, "blob_value": b"x",
    schema.TIME: NOW,
}  # fmt: skip
Rows = Iterator[tuple[schema.RowKey, dict[str, Any]]]


def threads(site: str) -> tuple[records.ThreadName, records.ThreadName]:
    """Return a thread with its id in its key, and one whose id is too long for that."""
    return records.ThreadName(site, "page"), records.ThreadName(site, "x" * 600)


def comment_id(site: str) -> str:
    return _id("comment", site)


def staff(site: str) -> str:
    """Return the id of the account with a role on the site."""
    return _id("staff", site)


def reader(site: str) -> str:
    """Return the id of the account of a reader whom the site identifies."""
    return _id("reader", site)


def follower(site: str) -> str:
    """Return the id of a subscriber of only this site."""
    return _id("follower", site)


def _id(what: str, site: str) -> str:
    return comment_rows.comment_id(hashlib.sha256(f"{what} {site}".encode()).digest())


def store_all(site: str) -> None:
    """Store rows of every kind for a site."""
    for kind, make in MAKERS.items():
        made = [_row(kind, key, values) for key, values in make(site)]
        owners = ownership.OWNERS.get(kind, "tests")
        owner = owners if isinstance(owners, str) else min(owners)
        writes = ownership.Writes(owner, put=tuple(made))
        transactions.transaction(functools.partial(transactions.apply, writes))


def _row(kind: str, key: schema.RowKey, values: dict[str, Any]) -> schema.StoredRow:
    columns = schema.KINDS[kind].COLUMNS.items()
    needed = {name: _FILLED[column.field] for name, column in columns if column.is_required}
    return schema.KINDS[kind](key=key, **{**needed, **values})


def _of_threads(make: Callable[[records.ThreadName], schema.RowKey], **values: Any) -> Any:
    return lambda site: ((make(name), values) for name in threads(site))


def _of_comment(make: Callable[[str], schema.RowKey], **values: Any) -> Any:
    return lambda site: iter([(make(comment_id(site)), values)])


def _of_site(make: Callable[[str], schema.RowKey], **values: Any) -> Any:
    return lambda site: iter([(make(site), values)])


def _sites(site: str) -> Rows:
    yield comment_rows.site_key(site), {"digits": "0123456789", "width": 4, "levels": 9}


def _threads(site: str) -> Rows:
    for name in threads(site):
        yield comment_rows.thread_key(name), {"site": site, "thread": name.id}


def _comments(site: str) -> Rows:
    name, _ = threads(site)
    values = {"site": site, "thread": comment_rows.thread_key_name(name), "thread_id": "page"}
    yield (
        comment_rows.comment_key(comment_id(site)),
        values | {"created": NOW, "status": "approved"},
    )


def _sets(site: str) -> list[records.SetName]:
    followers = [thread_followers.set_of(name) for name in threads(site)]
    return [*followers, inbox.set_of(site, "g:ann")]


def _marks(site: str) -> Rows:
    for name in _sets(site):
        entry = set_rows.mark_entry(name, 1, belongs=True)
        yield set_rows.mark_key(name, 1, "a" * 26), {"entry": entry}


def _subscriptions(site: str) -> Rows:
    """Subscribe an address of this site, and one that every site shares."""
    for subscriber in (follower(site), "shared"):
        key = subscription_rows.subscription_key(subscriber, _id("thread", site))
        yield key, {"site": site, "owner": f"{site}/g:ann", "list": f"thread:{site}/page"}


def _counters(site: str) -> Rows:
    for name in threads(site):
        yield counter_rows.thread_counter_key(name, 3), {"scope": "x", "site": site}
    yield counter_rows.site_counter_key(site), {"scope": f"site/{site}"}
    yield counter_rows.listings_key(site, 2), {"scope": f"threads/{site}"}


def _appearances(site: str) -> Rows:
    for day in ("", "2026-01-01"):
        scope = counting.day_scope(site, day, "a/b", "g:ann")
        yield counter_rows.statistics_key(scope), {"author": f"{site}/g:ann"}


def _events(site: str) -> Rows:
    state = counting.CountedState(
        site=site, thread=f"{site}/page", author="g:ann", status="approved", listed=True, up=0,
        down=0, categories=(), day="2026-01-01", reply=False,
    )  # fmt: skip
    changed = outbox.event_writes(
        outbox.EventKind.POSTED, f"{comment_id(site)}.1", [counting.CountedChange(None, state)],
        now=NOW,
    )  # fmt: skip
    followed = outbox.Followed(None, counting.Following(f"{site}/page"))
    _, joined = outbox.follow_writes(site, f"{site}/page", "t", followed, now=NOW)
    reply = mail_jobs.ReplyMail(f"{comment_id(site)}.1", "g:ann", [])
    mailed = outbox.follow(
        outbox.EventKind.MAIL, f"mail/{comment_id(site)}", mail_jobs.encode(reply), due=NOW
    )
    for row in (*changed.put, *joined.put, mailed):
        yield row.key, {name: getattr(row, name) for name in row.COLUMNS}


def _messages(site: str) -> Rows:
    for queue in (webhook_endpoints.queue(site, "0"), classifier_answers.queue(site, "akismet")):
        for row in message_queue.new_rows(f"{comment_id(site)}.1", [queue], "{}", at=NOW):
            yield row.key, {name: getattr(row, name) for name in row.COLUMNS}


def _accounts(site: str) -> Rows:
    yield account_rows.account_key(staff(site)), {
        "grants": [f"owner {site}", "moderator elsewhere"], "staff": True,
    }  # fmt: skip
    yield account_rows.account_key(reader(site)), {"identities": [f"site/{site}:ann"]}


def _providers(site: str) -> Rows:
    sites = [site, "elsewhere"]
    provider = {
        "name": "acme", "title": "Acme", "issuer": "https://acme.example", "client": "c",
        "secret": "", "created": NOW.isoformat(), "sites": sites,
    }  # fmt: skip
    yield account_rows.providers_key(), {"providers": json.dumps([provider])}


def _links(site: str) -> Rows:
    invitation = {"grants": [["owner", site]], "address": ""}
    code = {"site": site, "content": "", "code": "", "tries": 0}
    later = NOW + timedelta(days=7)
    for number, content in enumerate((invitation, code)):
        key = account_rows.link_key(f"{number}-{comment_id(site)}")
        yield key, {"content": json.dumps(content), "expires": later}


def _jobs(site: str) -> Rows:
    names = (
        f"counters/{site}", f"rescheme/{site}", f"recount/{site}", f"upload/{site}",
        f"categories/{site}/page", f"categories/{site}#{'0' * 64}",
    )  # fmt: skip
    for name in names:
        yield event_rows.job_key(name), {"position": "{}"}
    done = import_journal.Import("wxr", "a.xml", 1, 1, NOW, NOW, added=1, id="1a")
    yield event_rows.job_key(f"import/{site}/1a"), {"position": msgspec.json.encode(done).decode()}


MAKERS: dict[str, Callable[[str], Rows]] = {
    "Site": _sites,
    "SiteAlias": lambda site: iter(
        [(comment_rows.site_alias_key(_id("alias", site)), {"site": site})]
    ),
    "ThreadAlias": _of_threads(
        comment_rows.thread_alias_key,
    ),
    "MovePart": _of_site(lambda site: event_rows.move_part_key(f"{site}/1a/000000")),
    "SiteSetup": _of_site(comment_rows.site_setup_key, content="{}"),
    "Thread": _threads,
    "Comment": _comments,
    "BucketDirectory": _of_threads(bucket_rows.directory_key),
    "Bucket": _of_threads(lambda name: bucket_rows.bucket_key(name, "a-1"), content=b"x"),
    "Ranking": _of_threads(lambda name: bucket_rows.ranking_key(name, "b"), content=b"x"),
    "FollowerList": lambda site: ((set_rows.set_key(name), {}) for name in _sets(site)),
    "FollowerMark": _marks,
    "FollowerSegment": lambda site: (
        (set_rows.segment_key(name, "1-b-1"), {"content": b"x"}) for name in _sets(site)
    ),
    "Subscriber": lambda site: (
        (subscription_rows.subscriber_key(name), {"address": "sealed"})
        for name in (follower(site), "shared")
    ),
    "Subscription": _subscriptions,
    "Follow": _of_threads(lambda name: follow_rows.follow_key("g:ann", name), thread="page"),
    "RateBucket": _of_site(lambda _: event_rows.rate_bucket_key("posts/1")),
    "Usage": _of_site(lambda site: counter_rows.usage_key(site, "2026-01-01")),
    "Counter": _counters,
    "Participation": _of_threads(lambda name: counter_rows.participation_key(name, "g:ann")),
    "Standing": lambda site: iter(
        [(counter_rows.standing_key(site, "g:ann"), {"site": site, "alias": "a"})]
    ),
    "Category": _of_site(
        lambda site: counter_rows.statistics_key(counting.category_scope(site, "a/b"))
    ),
    "Day": _of_site(
        lambda site: counter_rows.statistics_key(counting.day_scope(site, "2026-01-01", "a/b"))
    ),
    "Month": _of_site(lambda site: counter_rows.month_key(site, "2026-01", "00")),
    "Appearance": _appearances,
    "DeclaredCount": _of_site(lambda site: declared_rows.declared_key(site, "1/a")),
    "Event": _events,
    "Message": _messages,
    "SiteHooks": _of_site(event_rows.site_hooks_key, hooks="[]"),
    "Account": _accounts,
    "Identity": lambda site: iter(
        [(account_rows.identity_key(f"site/{site}:ann"), {"account": reader(site)})]
    ),
    "Session": _of_site(lambda site: account_rows.session_key(reader(site), "s")),
    "Passkey": _of_site(lambda site: account_rows.passkey_key(reader(site), "p")),
    "SecurityLog": _of_site(lambda site: account_rows.security_log_key(reader(site)), due=NOW),
    "ModerationSession": lambda site: iter(
        [(account_rows.moderation_session_key(staff(site), "m"), {"site": site})]
    ),
    "Ticket": _links,
    "SiteKeys": _of_site(account_rows.site_keys_key),
    "Providers": _providers,
    "MailServer": lambda _: iter([(event_rows.mail_server_key(), {"content": "{}"})]),
    "AuditEntry": lambda site: iter(
        [(moderation_rows.audit_key(comment_id(site)), {"site": site})]
    ),
    "ErasureDue": _of_comment(moderation_rows.erasure_key),
    "Rulebook": _of_site(moderation_rows.rulebook_key, content="{}"),
    "AuthorLink": _of_site(lambda site: moderation_rows.claim_key(site, "i:ann"), since=NOW),
    "Report": lambda site: iter([(moderation_rows.report_key(comment_id(site)), {"site": site})]),
    "Advice": _of_comment(moderation_rows.advice_key, said="{}"),
    "Job": _jobs,
    "ImportBatch": _of_site(lambda site: event_rows.import_batch_key(f"{site}/1a/000001.b")),
    "ImportPart": _of_site(lambda site: event_rows.import_part_key(f"{site}/u/000001")),
    "Vote": lambda site: iter(
        [
            (
                vote_rows.vote_key(comment_id(site), "g:bob"),
                {"thread": comment_rows.thread_key_name(name), "value": 1},
            )
            for name in threads(site)[:1]
        ]
    ),
    "VotesDue": lambda site: iter(
        [(vote_rows.votes_due_key(comment_id(site)), {"thread": f"{site}/page"})]
    ),
    "VoterNetwork": _of_comment(lambda name: vote_rows.voter_network_key(name, "d")),
}
