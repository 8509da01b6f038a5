"""Mail shows what people typed, and mail programs can group the mails of one thread.

A real mail server receives the mails.
"""

# ruff: noqa: RUF001
from collections.abc import Sequence
from email.message import EmailMessage

import pytest

from comments.notifications.mail import plain_words
from comments.store import connection
from tests.support.outside.mail_server import Box
from tests.support.outside.mail_service import MailService, Said

# Each text contains joiners or variation selectors that change what a reader sees.
TYPED = (
    "می‌روم",  # Persian
    "USB‌ها ۲۰‌ساله",  # A Persian suffix
    "۱۳۷۰ ه‍",  # A Persian abbreviation
    "کوردیه‌ باش",  # Kurdish
    "ශ්‍රී",  # Sinhala
    "क्‍ष क्‌ष",  # Hindi
    "র‍্যাব",  # Bengali
    "എന്‍ വീട്",  # Malayalam
    "ᠮᠤᠷᠢᠨ᠎ᠠ ᠠ᠋",  # Mongolian
    "葛\U000e0100城 ﾃｽﾄ １２",  # Japanese
    "👩‍👩‍👦",  # A family
    "👩🏽‍💻 🧑🏿‍🤝‍🧑🏻",  # Skin tones
    "❤️‍🔥 ❤️ ☎︎",  # A heart
    "1️⃣ #️⃣",  # A keycap
    "©️ ™️ ‼️",  # Signs
    "🏳️‍🌈 🇮🇷 🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # Flags
    "½ ² ™ … ﬁ Ⅷ ㍿",  # Characters that NFKC changes
)
# In these places, a joiner changes nothing that a reader sees.
HIDDEN = {
    "An\u200dna": "Anna",
    "\u200cAnna\u200d": "Anna",
    "Анна\ufe0f Б\u200cорис": "Анна Борис",
    "A\u200d B": "A B",
    "می\u200c\u200c\u200dروم": "می‌روم",
    "😀\u200d": "😀",
    "😀\u200d\u200d😀\ufe0f\ufe0f": "😀😀\ufe0f",
    "a\ufe0f\u200d😀": "a😀",
    "\u3164\u200cه": "ه",
    "a\u2060b\u00adc\ufeffd\U000e0061": "abcd",
    "🏴\U000e0061\U000e007f": "🏴",
}


def _mails(store: connection.Store, box: Box, said: Sequence[Said]) -> list[EmailMessage]:
    service = MailService(store, box.settings(mails_per_day=1_000), box)
    service.mails_about(said)
    return [mail for _, mail in box.taken]


def _shown(mail: EmailMessage) -> tuple[str, str]:
    """Return a mail's subject and the name and text that its text part shows."""
    body = mail.get_body(("plain",))
    assert body is not None
    told, _, _ = body.get_content().replace("\r\n", "\n").partition("\n\nView on site")
    return str(mail["Subject"]), told


@pytest.mark.usefixtures("site")
def test_a_mail_shows_names_titles_and_texts_as_typed(store: connection.Store, box: Box) -> None:
    texts = [*TYPED]
    mails = _mails(store, box, [Said(text, text, text) for text in texts])
    shown = {_shown(mail) for mail in mails}
    assert shown == {(f'{t} commented on "{t}"', f"{t} wrote:\n\n> {t}") for t in texts}


@pytest.mark.parametrize("text", HIDDEN)
def test_joiners_that_join_nothing_are_dropped(text: str) -> None:
    assert plain_words.words(text) == plain_words.line(text) == HIDDEN[text]


@pytest.mark.usefixtures("site")
def test_mail_programs_can_group_the_mails_of_a_thread(store: connection.Store, box: Box) -> None:
    service = MailService(store, box.settings(), box)
    service.mails_about([Said()])
    for address in ("ann@example.org", "zoe@example.org"):
        service.subscribe(address)
    first = service.say("first")
    service.deliver()
    service.say("second", parent=first.id, author="g:ann")
    service.deliver()
    (other, *page) = [mail for _, mail in box.taken]
    assert len(page) == 4
    (thread,) = {mail["References"] for mail in page}
    assert {mail["In-Reply-To"] for mail in page} == {thread}
    assert other["References"] != thread
    assert len({mail["Message-ID"] for mail in [other, *page]} | {thread}) == 6
