"""Make a complete moderated site of any size, in a program that coverage does not measure.

    python -m tests.support.threads.large_site FILE COMMENTS

Half of the site's comments form one long discussion with a realistic shape; the other half forms
many short discussions. One comment in ten is pending, and one in ten is reported. One author wrote
every third comment. The site also has audit entries, days, categories, rules, bans, imports and
dead letters. Everything grows with the number of comments. The newest part is the same at any size,
because authors and statuses are assigned from the end.
"""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.threads import conversations, loading, shapes
from comments.domain import records
from comments.domain.records import Status
from comments.events import outbox
from comments.moderation.policy import policy_changes, rules
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.models import comment_rows, counter_rows, event_rows, moderation_rows, schema
from comments.store.models.counter_rows import new_author_row
from comments.store.wire import codec
from comments.transfer.importing import running_import
from comments.transfer.parsing import imported_file
from datastore_emulator import inprocess, protobufs
from tests.conftest import ROOT

SITE = "bench"
ADA = records.Actor("cli", "Ada")
PAGE = records.ThreadName(SITE, "page")
PROLIFIC = "g:prolific"  # This author wrote every third comment
SHAPE = shapes.grown(500)
SMALL = [None, 0, 0, 1, None]  # Shape of the short discussions
CATEGORIES = [f"category {number}" for number in range(20)]
DAYS = 365
BANS = 60


def make(path: Path, count: int) -> None:
    """Make the file. `count` must be a multiple of 1,000."""
    environ = {name: value for name, value in os.environ.items() if "COV" not in name}
    command: list[str | Path] = [sys.executable, "-m", __name__, path, str(count)]
    subprocess.run(command, cwd=ROOT, env=environ, check=True)


def fill(engine: inprocess.Engine, store: connection.Store, count: int, now: datetime) -> None:
    """Fill a store with the site. Call this function inside the store's context."""
    site_settings.add(SITE, ["http://localhost"], scheme=loading.SCHEME, now=now)
    loading.store_imported(conversations.thread([None]), PAGE)
    key = comment_rows.thread_key_name(PAGE)
    (template,) = reads.fetch(reads.Query("Comment", where=(("thread", "=", key),)))
    project = store.project
    engine.load(_comments(template, count, now), project)
    engine.load((_message(store, row) for row in _rows(count, now)), project)
    _rulebook(now)


def _comments(template: protobufs.Entity, count: int, now: datetime) -> Iterator[protobufs.Entity]:
    half = count // 2
    page = conversations.thread(shapes.repeated(SHAPE, half))
    yield from _placed(loading.rows(template, page, lambda place: place % 7), PAGE, 1, half, now)
    small = conversations.thread(shapes.repeated(SMALL, half), first=half)
    for number in range(half // len(SMALL)):
        left = half // len(SMALL) - number  # Counted from the end
        short = small[number * len(SMALL) : (number + 1) * len(SMALL)]
        name = records.ThreadName(SITE, f"small {left}")
        rows = loading.rows(template, short, lambda _place: 1)
        yield from _placed(rows, name, 0, left * len(SMALL), now)


def _placed(
    rows: Iterator[protobufs.Entity], name: records.ThreadName, odd: int, last: int, now: datetime
) -> Iterator[protobufs.Entity]:
    """Set the position, time, author and status of a thread's rows."""
    for step, row in enumerate(rows):
        place = 2 * (last - step - 1) + odd  # Number of later comments
        values = row.properties
        values["thread"].string_value = comment_rows.thread_key_name(name)
        values["thread_id"].string_value = name.id
        values["author_id"].string_value = author(place)
        values["author_name"].string_value = f"Author {author(place)[2:]}"
        status = status_of(place)
        values["status"].string_value = status.value
        values["listed"].boolean_value = status is Status.APPROVED
        if status is Status.PENDING:
            values["rule"].string_value, values["why"].string_value = "rule:links", "links: 3"
        for moment in ("created", "changed"):
            values[moment].timestamp_value.FromDatetime(now - timedelta(minutes=5 * place + 5))
        yield row


def author(place: int) -> str:
    """Return the author of the comment that `place` comments follow."""
    return PROLIFIC if place % 3 == 0 else f"g:author{place // 15 * 3 + place % 3}"


def status_of(place: int) -> Status:
    """Return the status of the comment that `place` comments follow."""
    if place % 10 == 1:
        return Status.PENDING
    return Status.SPAM if place % 29 == 7 else Status.APPROVED


def _rows(count: int, now: datetime) -> Iterator[schema.StoredRow]:
    places = range(count)
    statuses = Counter(status_of(place).value for place in places)
    site = counter_rows.site_counter_key(SITE)
    yield counter_rows.CounterRow(
        key=site, scope=f"site/{SITE}", numbers=counter_rows.encode(statuses)
    )
    yield from _authors(count)
    yield from _threads(count, now)
    for place in places:
        if place % 10 == 5:
            yield moderation_rows.ReportRow(
                key=moderation_rows.report_key(comment(place, count)), site=SITE, people=["x"],
                reasons='{"spam": 2}', open=place % 7 + 1, last=now,
            )  # fmt: skip
        if place % 2 == 1:
            yield _entry(place, count, now)
        if place % 5 == 0:
            yield event_rows.MessageRow(
                key=event_rows.message_key(f"{comment(place, count)}.1/mail/{place}"), queue="mail",
                content="{}", at=now, due=outbox.NEVER, since=outbox.NEVER, waits=False,
                attempts=24, reason="the server does not answer",
            )  # fmt: skip
    yield from _days(now)


def comment(place: int, count: int) -> str:
    """Return the id of the comment that `place` comments follow."""
    half = count // 2
    if place % 2 == 1:
        return conversations._id(half - 1 - place // 2)
    left = place // 2
    number, step = divmod(left, len(SMALL))
    return conversations._id(half + (half // len(SMALL) - number) * len(SMALL) - 1 - step)


def _authors(count: int) -> Iterator[schema.StoredRow]:
    numbers: dict[str, Counter[str]] = {}
    for place in range(count):
        found = numbers.setdefault(author(place), Counter())
        found[status_of(place).value] += 1
        found["score"] += place % 7
    for who, found in numbers.items():
        yield new_author_row(SITE, who, found, "")


def _threads(count: int, now: datetime) -> Iterator[schema.StoredRow]:
    half = count // 2
    sizes = {PAGE: half} | {
        records.ThreadName(SITE, f"small {left + 1}"): len(SMALL)
        for left in range(half // len(SMALL))
    }
    for number, (name, size) in enumerate(sizes.items()):
        yield comment_rows.ThreadRow(
            key=comment_rows.thread_key(name), site=SITE, thread=name.id, child_count=size,
            title=f"About {name.id}", url=f"http://localhost/{number}",
            categories=[CATEGORIES[number % len(CATEGORIES)]],
            created=now - timedelta(minutes=50 * number),
            active=now - timedelta(minutes=50 * number),
        )  # fmt: skip
        key = counter_rows.thread_counter_key(name, 0)
        text = counter_rows.encode({"listed": size, "approved": size})
        scope = f"thread/{comment_rows.thread_key_name(name)}"
        yield counter_rows.CounterRow(key=key, scope=scope, site=SITE, numbers=text)


def _entry(place: int, count: int, now: datetime) -> schema.StoredRow:
    name = comment_rows.comment_id(hashlib.sha256(f"audit {place}".encode()).digest())
    return moderation_rows.AuditEntryRow(
        key=moderation_rows.audit_key(name), site=SITE, subject=comment(place, count), verb="spam",
        actor="cli", actor_name="Ada", at=now - timedelta(minutes=place), before="approved",
        after="spam", reason="seen",
    )  # fmt: skip


def _days(now: datetime) -> Iterator[schema.StoredRow]:
    text = counter_rows.encode({"approved": 7, "participants": 3, "pending": 1})
    for category in ("", *CATEGORIES):
        if category:
            yield counter_rows.CategoryRow(
                key=schema.RowKey("Category", f"{SITE}/{category}"), numbers=text
            )
        for back in range(DAYS):
            day = (now.date() - timedelta(days=back)).isoformat()
            key = schema.RowKey("Day", f"{SITE}/{category}/{day}")
            yield counter_rows.DayRow(key=key, entry=f"{SITE}/{day}/{category}", numbers=text)


def _message(store: connection.Store, row: schema.StoredRow) -> protobufs.Entity:
    return codec.message(row, store.key(*row.key))


def _rulebook(now: datetime) -> None:
    for number in range(3):
        words = tuple(f"casino{each}" for each in range(20))
        rule = rules.Rule(f"words{number}", rules.Action.HOLD, words=words)
        policy_changes.put_rule(SITE, rule, ADA, now=now - timedelta(days=1))
    for number in range(BANS):
        policy_changes.ban(SITE, f"g:author{number}", ADA, now=now - timedelta(days=1))
    for system in ("disqus", "wordpress"):
        file = imported_file.ImportedFile(system, f"{system}.xml", "digest", 1_145)
        journal = running_import.RunningImport(SITE, file, now, lambda: now)
        journal.begin()
        journal.advance(1_145)
        journal.end()


def main(path: str, count: str) -> None:
    with inprocess.open_engine(path, indexes=ROOT / "index.yaml", durability="fast") as engine:
        store = connection.Store(inprocess.Channel(engine), project=loading.PROJECT)
        with store.context():
            fill(engine, store, int(count), datetime.now(UTC))


if __name__ == "__main__":
    main(*sys.argv[1:])
