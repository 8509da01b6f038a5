"""Numbers about the service for monitoring systems, in JSON and in the format of Prometheus.

The format is Prometheus' text format, version 0.0.4; all numbers are gauges. Collecting the numbers
reads the list of websites, the usage of each website with a daily budget, the state of the audit,
and at most 6,000 index entries of pending deliveries.
"""

import re
import shutil
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from comments import config
from comments.events import dead_letters
from comments.limits import budgets
from comments.sites import site_settings
from comments.store import connection
from comments.store.folder import storage_faults
from comments.upkeep import service_checks
from comments.upkeep.backups import nightly_backup
from comments.upkeep.integrity import thread_audit

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPED = re.compile(r'[\\"\n]')
_ESCAPES = {"\\": r"\\", '"': r"\"", "\n": r"\n"}


class Metric(NamedTuple):
    """A number. `labels` distinguish several numbers with one name. Times are in seconds."""

    name: str
    description: str
    value: int
    labels: tuple[tuple[str, str], ...] = ()


def collect(settings: config.Settings, *, now: datetime) -> Iterator[Metric]:
    """Yield all numbers. Numbers with the same name follow each other.

    Raises:
        errors.Overloaded, errors.StorageFault: the store does not answer.
    """
    yield from _store(settings)
    waiting = dead_letters.count_waiting(now)
    yield Metric("pending_events", "Events to be delivered, at most 1,000.", waiting.events)
    yield Metric("pending_messages", "Messages to be sent, at most 1,000.", waiting.messages)
    yield Metric("pending_seconds", "Age of the oldest event or message.", waiting.oldest)
    yield Metric("dead_letters", "Deliveries that were given up, at most 1,000.", waiting.dead)
    audit = thread_audit.state()
    if audit is not None:
        yield Metric("audit_checked", "Threads that the audit checked.", audit.checked)
        yield Metric("audit_skipped", "Threads too large for the audit.", audit.skipped)
        yield Metric("audit_problems", "Threads with problems.", len(audit.found))
    yield from _backups(settings, now)
    yield from _budgets(now)


def _store(settings: config.Settings) -> Iterator[Metric]:
    store = connection.current()
    yield Metric(
        "lost_changes", "1 if acknowledged changes were lost.", int(store.lost is not None)
    )
    if not service_checks.has_files(settings):
        return
    fault = storage_faults.writing_fault(settings.data_dir) or store.faults.damage
    yield Metric("store_writable", "0 if the data folder refuses writes.", int(fault is None))
    size = settings.data_file.stat().st_size
    yield Metric("store_bytes", "Size of the data file.", size)
    free = shutil.disk_usage(settings.data_dir).free
    yield Metric("disk_free_bytes", "Free space on the disk of the data folder.", free)


def _backups(settings: config.Settings, now: datetime) -> Iterator[Metric]:
    nightly = nightly_backup.state(settings, now=now)
    if nightly is None:
        return
    yield Metric("backup_overdue", "1 if a nightly backup is overdue.", int(nightly.is_overdue))
    if nightly.record.last is not None:
        age = (now - nightly.record.last).total_seconds()
        yield Metric("backup_seconds", "Age of the last nightly backup.", int(age))


def _budgets(now: datetime) -> Iterator[Metric]:
    used = [
        (amount, most, (("site", site.id), ("budget", name)))
        for site in site_settings.every()
        for name, amount, most, _ in budgets.each(site, now=now)
    ]
    for amount, _, labels in used:
        yield Metric("budget_used", "Amount of a daily budget used today.", amount, labels)
    for _, most, labels in used:
        yield Metric("budget_limit", "Daily budget of a website.", most, labels)


def prometheus(metrics: Sequence[Metric]) -> str:
    """Write numbers in the text format of Prometheus. Their names begin with `flatthread_`."""
    lines = []
    described = ""
    for metric in metrics:
        name = f"flatthread_{metric.name}"
        if name != described:
            lines += [f"# HELP {name} {metric.description}", f"# TYPE {name} gauge"]
            described = name
        labels = ",".join(f'{label}="{_escape(text)}"' for label, text in metric.labels)
        lines.append(f"{name}{{{labels}}} {metric.value}" if labels else f"{name} {metric.value}")
    return "".join(f"{line}\n" for line in lines)


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda match: _ESCAPES[match.group()], text)
