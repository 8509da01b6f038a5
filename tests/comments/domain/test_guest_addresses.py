"""E-mail addresses that authors give with their comments are unreadable in the store."""

import hashlib

from comments.domain import records
from comments.domain.crypto import guest_addresses, keyed_hashes, secret_rotation
from comments.store import connection, reads
from comments.store.models import comment_rows
from comments.transfer import personal_data
from tests.support.threads import sample_threads

SECRET = sample_threads.SETTINGS.secret
ADDRESS = "ann@mailbox.example"


def post(site: records.Site, **more: str) -> records.Comment:
    author = records.Author("Ann", email=ADDRESS)
    return sample_threads.post(site, "text", author=author, **more)  # type: ignore[arg-type]


def test_an_address_is_stored_encrypted_and_exported_to_its_owner(
    store: connection.Store, site: records.Site
) -> None:
    row = post(site)
    stored = reads.get(comment_rows.comment_key(row.id))
    assert "@" not in stored.author_email
    assert guest_addresses.address(stored.author_email, SECRET, now=sample_threads.START) == ADDRESS
    told = personal_data.export(row.author.id, secret=SECRET, now=sample_threads.START)
    assert [each.email for each in told.comments] == [ADDRESS]
    for message in reads.fetch(reads.Query("Comment")):
        assert b"mailbox" not in message.SerializeToString()


def test_an_undecryptable_address_is_empty() -> None:
    sealed = guest_addresses.sealed_address(ADDRESS, SECRET, now=sample_threads.START)
    assert (
        guest_addresses.address(
            sealed, "another secret of 32 characters.", now=sample_threads.START
        )
        == ""
    )
    rotated = secret_rotation.Secret("another secret of 32 characters.", SECRET)
    assert guest_addresses.address(sealed, rotated, now=sample_threads.START) == ADDRESS
    assert guest_addresses.address("", SECRET, now=sample_threads.START) == ""
    assert guest_addresses.sealed_address("", SECRET, now=sample_threads.START) == ""


def test_a_guessed_address_cannot_be_verified_against_the_store(
    store: connection.Store, site: records.Site
) -> None:
    row = reads.get(comment_rows.comment_key(post(site).id))
    guessed = ("Ann", "", ADDRESS, "", "text")
    assert row.fingerprint != hashlib.sha256(keyed_hashes.join(guessed)).digest()
