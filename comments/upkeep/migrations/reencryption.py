"""Re-encrypt stored data after a change of `SECRET`, so that the old secret can be removed.

This module handles all values that stay encrypted for longer than a few days. Encrypted values in
links and questions expire on their own; docs/secrets.md lists both kinds of values.

Each row is changed in its own transaction, and rows that are encrypted with the current secret stay
unchanged. The job can be interrupted, repeated, and run while the service is in use.
"""

from typing import NamedTuple

from comments.accounts import accounts, site_keys
from comments.accounts.oidc import providers
from comments.moderation.classifiers import registration
from comments.notifications import double_opt_in, subscriptions
from comments.sites import mail_server, site_settings, turnstile_settings
from comments.store import reads


class ReencryptionCounts(NamedTuple):
    """The numbers of re-encrypted rows, and of subscribers whose id comes from the old secret."""

    rows: int
    subscribers: int


def renew(by: registration.By) -> ReencryptionCounts:
    """Re-encrypt all stored values that are encrypted with the old secret.

    Raises:
        errors.Overloaded: the store did not respond in time; run the job again.
    """
    secret, rows = by.settings.secret, int(providers.renew(by.settings.secret))
    rows += int(mail_server.renew(secret))
    for site in [website.id for website in site_settings.every_kept()]:
        rows += registration.renew(site, by)
        rows += turnstile_settings.renew(site, secret)
        rows += site_keys.renew(site, secret)
    rows += sum(accounts.renew(name, secret) for name in reads.names("Account"))
    kept = 0
    for name in reads.names("Subscriber"):
        rows += subscriptions.renew(name, lambda stored: double_opt_in.reencrypt(stored, secret))
        kept += double_opt_in.is_of_the_past(name, secret, now=by.now)
    return ReencryptionCounts(rows, kept)
