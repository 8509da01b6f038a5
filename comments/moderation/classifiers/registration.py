"""Register the classifiers that a site uses.

Each change adds an audit log entry (`policy_changes`) and applies to the next text (`rulebook`).

An address is checked before it is stored. Secrets are stored encrypted. A secret that this module
generates is returned once; a secret that the owner entered is never returned.
"""

import secrets
from datetime import datetime
from typing import NamedTuple

import msgspec

from comments import config, errors
from comments.domain import records
from comments.domain.crypto import encryption
from comments.domain.moderation import classifier_verdicts
from comments.events import safe_http, webhooks
from comments.moderation.classifiers import akismet
from comments.moderation.policy import policy_changes, rulebook
from comments.store import reads
from comments.store.models import comment_rows

_SECRET_BYTES = 32
_LONGEST_KEY = 100


class Terms(NamedTuple):
    """The conditions for asking a classifier (see `classifier_verdicts.Classifier`)."""

    holds: bool = True
    shows: bool = False
    everybody: bool = False


class By(NamedTuple):
    """The actor, time and reason of a change, and the settings with the encryption secret."""

    actor: records.Actor
    now: datetime
    settings: config.Settings
    reason: str = ""


def every(site: str) -> tuple[classifier_verdicts.Classifier, ...]:
    """Return the classifiers that a site currently uses.

    Raises:
        errors.NotFound: the site does not exist.
    """
    if not site or reads.get(comment_rows.site_key(site)) is None:
        raise errors.NotFound("site", site)
    return rulebook.from_store(site).classifiers


def secrets_of(
    classifier: classifier_verdicts.Classifier, secret: str, *, now: datetime
) -> tuple[str, ...]:
    """Decrypt a classifier's secrets.

    Raises:
        errors.BadLink: the secrets were encrypted with a `SECRET` that is no longer accepted.
    """
    return tuple(
        encryption.unseal(sealed, classifier_verdicts.SECRET, secret, now=now)
        for sealed in classifier.secrets
    )


def set_webhook(site: str, url: str, terms: Terms, by: By, client: safe_http.HttpClient) -> str:
    """Register a site's own service, or change the service's address and terms.

    Returns:
        The signing secret of a new registration; "" if the service was already registered.

    Raises:
        errors.NotFound: the site does not exist.
        errors.BadInput: the address is not https, does not resolve, or is not public.
    """
    client.vet(url)
    made = _new_secret()
    fresh = _seal(made, by)
    is_new = rulebook.from_store(site).classifier(classifier_verdicts.WEBHOOK) is None

    def change(stored: classifier_verdicts.Classifier | None) -> classifier_verdicts.Classifier:
        kept = (fresh,) if stored is None else stored.secrets
        return classifier_verdicts.Classifier("webhook", url, kept, *terms)

    _set_classifier(site, classifier_verdicts.WEBHOOK, change, by)
    return made if is_new else ""


def set_akismet(
    site: str, key: str, terms: Terms, by: By, client: safe_http.HttpClient, *, url: str = ""
) -> None:
    """Register Akismet, or change its key and terms. An empty key keeps the stored key.

    `url` is the address of a different service with the same protocol.

    Raises:
        errors.NotFound: the site does not exist.
        errors.BadInput: the key is missing or malformed, or the address is not allowed or cannot be
            reached.
    """
    if not ((key.isascii() and key.isalnum()) or not key) or len(key) > _LONGEST_KEY:
        raise errors.BadInput("key", "not-alphanumeric", limit=_LONGEST_KEY)
    if url:
        client.vet(url)
    fresh = (_seal(key, by),) if key else ()

    def change(stored: classifier_verdicts.Classifier | None) -> classifier_verdicts.Classifier:
        kept = fresh or (() if stored is None else stored.secrets)
        if not kept:
            raise errors.BadInput("key", "required")
        where = url or (akismet.ADDRESS if stored is None else stored.url)
        return classifier_verdicts.Classifier("akismet", where, kept, *terms)

    _set_classifier(site, classifier_verdicts.AKISMET, change, by)


def rotate(site: str, by: By, *, keeps_old: bool) -> str:
    """Create and return a new signing secret for a site's own service.

    If `keeps_old` is set, the old secret also stays valid. Do not set `keeps_old` if the old secret
    has leaked.

    Raises:
        errors.NotFound: the site does not exist or has not registered a service.
    """
    made = _new_secret()
    fresh = _seal(made, by)

    def change(stored: classifier_verdicts.Classifier | None) -> classifier_verdicts.Classifier:
        if stored is None:
            raise errors.NotFound("adviser", classifier_verdicts.WEBHOOK)
        kept = (fresh, stored.secrets[0]) if keeps_old else (fresh,)
        return msgspec.structs.replace(stored, secrets=kept)

    _set_classifier(site, classifier_verdicts.WEBHOOK, change, by)
    return made


def renew(site: str, by: By) -> int:
    """Re-encrypt the secrets of a site's classifiers with the current `SECRET`.

    Returns:
        The number of classifiers whose secrets were re-encrypted.

    Raises:
        errors.NotFound: the site does not exist.
    """
    secret, changed = by.settings.secret, 0

    def fresh(classifier: classifier_verdicts.Classifier) -> tuple[str, ...]:
        return tuple(
            encryption.reseal(sealed, classifier_verdicts.SECRET, secret) or sealed
            for sealed in classifier.secrets
        )

    def change(
        stored: classifier_verdicts.Classifier | None,
    ) -> classifier_verdicts.Classifier | None:
        return stored and msgspec.structs.replace(stored, secrets=fresh(stored))

    for classifier in every(site):
        if fresh(classifier) != classifier.secrets:
            _set_classifier(site, classifier.name, change, by)
            changed += 1
    return changed


def remove(site: str, name: str, by: By) -> None:
    """Remove a classifier.

    Moderators must then decide about the comments that await the classifier's answer.

    Raises:
        errors.NotFound: the site does not exist or has no classifier with this name.
    """

    def change(stored: classifier_verdicts.Classifier | None) -> None:
        if stored is None:
            raise errors.NotFound("adviser", name)

    _set_classifier(site, name, change, by)


def _set_classifier(site: str, name: str, change: policy_changes.ClassifierChange, by: By) -> None:
    row = reads.get(comment_rows.site_key(site)) if site else None
    if row is None:
        raise errors.NotFound("site", site)
    if row.copy_of:
        raise errors.Conflict("site-copy")
    policy_changes.set_classifier(site, name, change, by.actor, now=by.now, reason=by.reason)


def _seal(text: str, by: By) -> str:
    return encryption.seal(text, classifier_verdicts.SECRET, by.settings.secret, now=by.now)


def _new_secret() -> str:
    return webhooks.secret(secrets.token_bytes(_SECRET_BYTES))
