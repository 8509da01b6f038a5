"""Claims about mail addresses that people give with a comment: nobody reads them in the store."""

import hashlib

import flask.testing

from comments import datastore, digests, guestmail, models, personal, records, rotation
from tests import trees

SECRET = trees.SETTINGS.secret
ADDRESS = "ann@mailbox.example"


def post(site: records.Site, **more: str) -> records.Comment:
    author = records.Author("Ann", email=ADDRESS)
    return trees.post(site, "text", author=author, **more)


def test_an_address_is_stored_sealed_and_given_to_its_owner(
    store: datastore.Store, site: records.Site
) -> None:
    row = post(site)
    stored = datastore.get(models.comment_key(row.id))
    assert "@" not in stored.author_email
    assert guestmail.address(stored.author_email, SECRET, now=trees.START) == ADDRESS
    told = personal.export(row.author.id, secret=SECRET, now=trees.START)
    assert [each.email for each in told.comments] == [ADDRESS]
    for message in datastore.fetch(datastore.Query("Comment")):
        assert b"mailbox" not in message.SerializeToString()


def test_what_cannot_be_opened_is_no_address() -> None:
    sealed = guestmail.sealed_address(ADDRESS, SECRET, now=trees.START)
    assert guestmail.address(sealed, "another secret of 32 characters.", now=trees.START) == ""
    rotated = rotation.Secret("another secret of 32 characters.", SECRET)
    assert guestmail.address(sealed, rotated, now=trees.START) == ADDRESS
    assert guestmail.address("", SECRET, now=trees.START) == ""
    assert guestmail.sealed_address("", SECRET, now=trees.START) == ""
    assert guestmail.address(ADDRESS, SECRET, now=trees.START) == ADDRESS


def test_a_guess_of_an_address_cannot_be_tried_on_what_is_stored(
    store: datastore.Store, site: records.Site
) -> None:
    row = datastore.get(models.comment_key(post(site).id))
    guessed = ("Ann", "", ADDRESS, "", "text")
    assert row.fingerprint != hashlib.sha256(digests.joined(guessed)).digest()


def test_a_repeat_across_the_upgrade_is_the_same_comment(
    client: flask.testing.FlaskClient, store: datastore.Store, site: records.Site
) -> None:
    key = "a key of 16 bytes"
    row = post(site, key=key)

    def body() -> None:
        stored = datastore.get(models.comment_key(row.id))
        said = ("Ann", "", ADDRESS, "", "text")
        stored.fingerprint = hashlib.sha256(digests.joined(said)).digest()
        datastore.apply(datastore.Writes("tree", put=(stored,)))

    datastore.transaction(body)
    assert post(site, key=key).id == row.id
