"""After a change of the secret: what is stored sealed is sealed anew, so that the old one may go.

Owns the pass over everything that is sealed for longer than a few days. Each row is a transaction
of its own, and a row that is sealed under the current secret is left alone: the pass may be
interrupted, run again, and run beside a service that is in use. Seals that only links and questions
hold end by themselves; docs/secrets.md lists them all.
"""

from typing import NamedTuple

from comments import advisers, consent, datastore, sites, subscriptions, turnstiles
from comments.accounts import people, providers, sitekeys


class Renewed(NamedTuple):
    """How many rows were sealed anew, and how many subscribers keep an id of the old secret."""

    rows: int
    subscribers: int


def renew(by: advisers.By) -> Renewed:
    """Seal everything that is stored under the old secret under the current one.

    Raises:
        errors.Overloaded: the store did not answer in time; run it again.
    """
    secret, rows = by.settings.secret, int(providers.renew(by.settings.secret))
    for site in [each.id for each in sites.every()]:
        rows += advisers.renew(site, by)
        rows += turnstiles.renew(site, secret)
        rows += sitekeys.renew(site, secret)
    rows += sum(people.renew(each, secret) for each in _names("Account"))
    kept = 0
    for each in _names("Subscriber"):
        rows += subscriptions.renew(each, lambda stored: consent.renewed(stored, secret))
        kept += consent.is_of_the_past(each, secret, now=by.now)
    return Renewed(rows, kept)


def _names(kind: str) -> list[str]:
    found = datastore.fetch(datastore.Query(kind, keys_only=True))
    return [entity.key.path[-1].name for entity in found]
