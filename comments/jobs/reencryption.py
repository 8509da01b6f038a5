"""After a change of the secret: what is stored sealed is sealed anew, so that the old one may go.

Owns the pass over everything that is sealed for longer than a few days. Each row is a transaction
of its own, and a row that is sealed under the current secret is left alone: the pass may be
interrupted, run again, and run beside a service that is in use. Seals that only links and questions
hold end by themselves; docs/secrets.md lists them all.
"""

from typing import NamedTuple

from comments.accounts import accounts, site_keys
from comments.accounts.oidc import providers
from comments.moderation.classifiers import registration
from comments.notifications import double_opt_in, subscriptions
from comments.posting import turnstile_settings
from comments.sites import site_settings
from comments.store import reads


class Renewed(NamedTuple):
    """How many rows were sealed anew, and how many subscribers keep an id of the old secret."""

    rows: int
    subscribers: int


def renew(by: registration.By) -> Renewed:
    """Seal everything that is stored under the old secret under the current one.

    Raises:
        errors.Overloaded: the store did not answer in time; run it again.
    """
    secret, rows = by.settings.secret, int(providers.renew(by.settings.secret))
    for site in [each.id for each in site_settings.every()]:
        rows += registration.renew(site, by)
        rows += turnstile_settings.renew(site, secret)
        rows += site_keys.renew(site, secret)
    rows += sum(accounts.renew(each, secret) for each in _names("Account"))
    kept = 0
    for each in _names("Subscriber"):
        rows += subscriptions.renew(each, lambda stored: double_opt_in.renewed(stored, secret))
        kept += double_opt_in.is_of_the_past(each, secret, now=by.now)
    return Renewed(rows, kept)


def _names(kind: str) -> list[str]:
    found = reads.fetch(reads.Query(kind, keys_only=True))
    return [entity.key.path[-1].name for entity in found]
