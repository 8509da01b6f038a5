"""The security log of an account as its pages show it."""

from datetime import UTC, datetime
from typing import NamedTuple

from comments.accounts import accounts, security_log
from comments.web.rendering import labels


class ShownEntry(NamedTuple):
    """An entry of a security log: the time, what happened, who acted, and the network's name."""

    time: datetime
    event: str
    by: str
    network: str


def of(account: str) -> list[ShownEntry]:
    """Return an account's entries, newest first."""
    entries = security_log.list_entries(account, now=datetime.now(UTC))
    ids = {entry.by for entry in entries} - {"", security_log.OPERATOR}
    names = {"": "", security_log.OPERATOR: labels.text("admin.log-operator")}
    names |= accounts.names(ids)
    return [
        ShownEntry(
            entry.time,
            labels.label("admin.event", entry.event),
            names.get(entry.by, labels.text("admin.log-removed")),
            network,
        )
        for entry, network in security_log.with_network_names(entries)
    ]
