"""Detect a rush: unusually many sign-in mails to one domain or from the whole service.

During a rush, requests are not refused, because most of them still come from readers. Instead, each
mail requires a proof of work (`proof_policy`), and each process logs the rush once an hour.

The counts are stored, so all processes share them. Each count is spread over `SHARES` rows, and
each request updates one random row. With a single row, all sign-ins would wait for each other.
Because of the random choice, the thresholds are approximate.
"""

import logging
import secrets
from datetime import datetime, timedelta

from comments.limits import rate_limits
from comments.store import ownership
from comments.store.memory import per_process

SHARES = 8
HOUR = timedelta(hours=1)
PER_DOMAIN = rate_limits.Limit("sign-in mails of a domain", 200, HOUR)
PER_SERVICE = rate_limits.Limit("sign-in mails of the service", 1_000, HOUR)
_LOGGED_AT = per_process.PerProcess(dict[str, datetime])
_log = logging.getLogger("flatthread")


class MailRush:
    """The counts that one request uses. Read `buckets` before calling `count_writes`."""

    def __init__(self, domain: str, secret: str) -> None:
        share = secrets.randbelow(SHARES)
        self._all = {
            limit: rate_limits.RateLimitBucket(
                limit._replace(most=limit.most // SHARES), f"{subject}/{share}", secret
            )
            for limit, subject in ((PER_DOMAIN, domain.lower()), (PER_SERVICE, ""))
        }

    @property
    def buckets(self) -> tuple[rate_limits.RateLimitBucket, ...]:
        """Return the buckets to read in the transaction."""
        return tuple(self._all.values())

    @property
    def is_on(self) -> bool:
        """Return whether a threshold is reached."""
        return any(bucket.is_empty for bucket in self.buckets)

    def count_writes(self) -> tuple[ownership.Writes, ...]:
        """Count one more mail."""
        return tuple(bucket.count_writes() for bucket in self.buckets)

    def tell(self, now: datetime) -> None:
        """Log which threshold was reached, without the domain or the address."""
        logged_at = _LOGGED_AT.get()
        for limit, bucket in self._all.items():
            last = logged_at.get(limit.purpose)
            if bucket.is_empty and (last is None or now - last >= HOUR):
                logged_at[limit.purpose] = now
                _log.warning(
                    "About %d %s within an hour; each now requires a proof of work",
                    limit.most,
                    limit.purpose,
                )
