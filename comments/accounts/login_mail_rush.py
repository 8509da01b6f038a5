"""Rushes: more sign-in mails than people ask for, to one domain or from the service as a whole.

Nothing is refused in a rush, because most of those who ask are readers. A mail takes a proof of
work then (`proof_policy`), and the log says so once an hour in each process.

Counts are stored and hold for all processes. Each is spread over `SHARES` rows, of which a request
reads and writes one by chance: a single row would make all who sign in wait for each other. So the
thresholds are approximate.
"""

import logging
import secrets
from datetime import datetime, timedelta

from comments.sites import rate_limits
from comments.store import ownership, per_process

SHARES = 8
HOUR = timedelta(hours=1)
PER_DOMAIN = rate_limits.Limit("sign-in mails of a domain", 200, HOUR)
PER_SERVICE = rate_limits.Limit("sign-in mails of the service", 1_000, HOUR)
_TOLD = per_process.PerProcess(dict[str, datetime])
_log = logging.getLogger("flatthread")


class MailRush:
    """The counts of one request for a mail: read `buckets` first, then `take`."""

    def __init__(self, domain: str, secret: str) -> None:
        share = secrets.randbelow(SHARES)
        self._all = {
            limit: rate_limits.Bucket(
                limit._replace(most=limit.most // SHARES), f"{subject}/{share}", secret
            )
            for limit, subject in ((PER_DOMAIN, domain.lower()), (PER_SERVICE, ""))
        }

    @property
    def buckets(self) -> tuple[rate_limits.Bucket, ...]:
        """The buckets to be read in the transaction."""
        return tuple(self._all.values())

    @property
    def is_on(self) -> bool:
        """Whether either threshold is reached."""
        return any(bucket.is_empty for bucket in self.buckets)

    def take(self) -> tuple[ownership.Writes, ...]:
        """Count one more."""
        return tuple(bucket.take() for bucket in self.buckets)

    def tell(self, now: datetime) -> None:
        """Log which threshold was reached; neither the domain nor the address is named."""
        told = _TOLD.get()
        for limit, bucket in self._all.items():
            last = told.get(limit.purpose)
            if bucket.is_empty and (last is None or now - last >= HOUR):
                told[limit.purpose] = now
                _log.warning(
                    "about %d %s within an hour: each takes a proof of work now",
                    limit.most,
                    limit.purpose,
                )
