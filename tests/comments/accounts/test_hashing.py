"""Test which passwords people may choose."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zxcvbn import frequency_lists  # type: ignore[import-untyped]

from comments import errors
from comments.accounts.passwords import hashing

WIDE = "".join(chr(ord(letter) + 0xFEE0) for letter in "password123")
COMMON = frequency_lists.FREQUENCY_LISTS["passwords"][:10_000]


@given(st.sampled_from(COMMON), st.sampled_from([str, str.upper, str.title, " {} ".format]))
def test_the_10000_most_common_passwords_are_refused_in_any_case(common: Any, spelt: Any) -> None:
    with pytest.raises(errors.BadInput):
        hashing.check(spelt(common))


@pytest.mark.parametrize("word", ["washington", "Government", WIDE])
def test_full_width_letters_and_appended_words_do_not_make_a_password_uncommon(word: str) -> None:
    with pytest.raises(errors.BadInput, match="common-password"):
        hashing.check(word)


@pytest.mark.parametrize("password", ["Ann.From.Blog", "ann@example.org", "ANN@EXAMPLE.ORG"])
def test_a_password_similar_to_the_login_or_address_is_refused(password: str) -> None:
    with pytest.raises(errors.BadInput, match="password-is-login"):
        hashing.check(password, "ann.from.blog", "ann@example.org")
    assert hashing.check(password) == password, "accepted for another person"


@pytest.mark.parametrize("password", ["correct horse battery", "not my 10000th", "ünïcödé wörds"])
def test_any_other_password_is_accepted_unchanged(password: str) -> None:
    assert hashing.check(password, "ann", "") == password


def test_a_process_loads_the_word_list_only_when_a_password_is_chosen() -> None:
    code = (
        "import sys; from comments.accounts.passwords import hashing\n"
        "assert 'zxcvbn' not in sys.modules\n"
        "hashing.check('correct horse battery')\n"
        "assert 'zxcvbn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
