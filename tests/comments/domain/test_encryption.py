"""Each encrypted text has one purpose, one secret and a stable format."""

from datetime import UTC, datetime, timedelta

import pytest

from comments import errors
from comments.domain.crypto import encryption

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECRET = "a secret of the tests"
# The store and people's mailboxes contain values in this format.
SEALED = (
    "gAAAAABpVzWlT6-CLaQDJxsmm4utiUu9b_rKjsqe4cn55fIGRD4nRiTeiU1G"
    "DTLj6hWKlmy2IzGAyU6eqagmbYVRJw2t_shDAw=="
)


def test_a_text_is_decrypted_only_for_its_purpose_and_under_its_secret() -> None:
    made = encryption.seal("ann@example.org", "address", SECRET, now=NOW)
    assert "ann" not in made
    assert encryption.unseal(made, "address", SECRET, now=NOW) == "ann@example.org"
    broken = [(made, "confirm", SECRET), (made, "address", "another"), ("ä", "address", SECRET)]
    for text, purpose, secret in [*broken, (made[:-4], "address", SECRET), ("", "address", SECRET)]:
        with pytest.raises(errors.BadLink):
            encryption.unseal(text, purpose, secret, now=NOW)


def test_an_encrypted_text_is_valid_for_its_term() -> None:
    made = encryption.seal("text", "confirm", SECRET, now=NOW)
    term = timedelta(days=2)
    assert encryption.unseal(made, "confirm", SECRET, now=NOW + term, term=term) == "text"
    with pytest.raises(errors.BadLink) as caught:
        encryption.unseal(made, "confirm", SECRET, now=NOW + term + timedelta(seconds=1), term=term)
    assert caught.value.code == "link-expired"


def test_encrypting_a_text_twice_gives_different_results() -> None:
    assert len({encryption.seal("text", "address", SECRET, now=NOW) for _ in range(3)}) == 3


def test_the_format_is_stable() -> None:
    assert encryption.unseal(SEALED, "address", SECRET, now=NOW) == "ann@example.org"
