"""What a classifier says of a comment, and which classifiers a site asks (pure).

A site asks its *classifiers* (`Classifier`). Each is asked a *question* about one text of one
comment and gives an *answer*: a verdict and a reason. Their stored forms are here too: an event's
`detail` (`Asked`), a message's `content` (`Question`), and the rule of a comment that waits for
answers, which keeps the word it was first stored with:

    opinion:akismet+webhook   held until both have said that it may be shown

What must stay true: an opinion is a stranger's word. What is not exactly one of ours is none.
"""

import enum
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from comments import errors
from comments.domain import outcomes

AKISMET, WEBHOOK = "akismet", "webhook"
NAMES = (AKISMET, WEBHOOK)
MOST = len(NAMES)  # advisers of one site
LABELS = {AKISMET: "Akismet", WEBHOOK: "the site's own service"}
LONGEST_REASON = 300
SENDER = "sender"  # the purposes under which a sender and an adviser's secret are sealed
SECRET = "adviser's secret"  # noqa: S105 - the name of a purpose
_WAITS = "opinion:"


class Verdict(enum.StrEnum):
    """What an adviser says should become of a comment. Stored as text."""

    APPROVE = "approve"
    HOLD = "hold"
    SPAM = "spam"
    REJECT = "reject"


class ClassifierAnswer(msgspec.Struct, frozen=True):
    """A verdict, and why: one line, for moderators.

    Raises:
        errors.BadInput: the reason is too long, or no line of printable text.
    """

    verdict: Verdict
    reason: str = ""

    def __post_init__(self) -> None:
        """Check the reason."""
        if len(self.reason) > LONGEST_REASON or not self.reason.isprintable():
            raise errors.BadInput(
                "reason", f"is one line of printable text, {LONGEST_REASON} characters at most"
            )


class Classifier(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whom a site asks about its comments, where, and on which terms. `secrets` are sealed.

    With `holds` a comment is shown when he says so, without it until he says otherwise. What he
    could not be asked about stays as it is, or is shown in the end where `shows` says so. Comments
    of people with an account are put to him where he is asked about `everybody`.
    """

    name: Literal["akismet", "webhook"]
    url: str
    secrets: tuple[str, ...]
    holds: bool = True
    shows: bool = False
    everybody: bool = False


class Asked(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who is to be asked about a text, as the event of it says. `sender` is a sealed `Sender`."""

    of: tuple[str, ...]
    sender: str = ""


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a message puts to an adviser: about the text that came with a revision of a comment.

    A `correction` asks nothing: it says what a moderator made of what he had said ("ham", "spam").
    """

    revision: int
    sender: str = ""
    correction: str = ""


class Sender(msgspec.Struct, frozen=True, array_like=True):
    """Where a text came from, for advisers who need to know. Stored sealed, and only meanwhile."""

    network: str = ""
    browser: str = ""


class Heard(NamedTuple):
    """How asking ended. What was delivered without an opinion will be answered later."""

    outcome: outcomes.Outcome
    opinion: ClassifierAnswer | None = None


def asked(advisers: Iterable[Classifier], *, is_guest: bool) -> tuple[Classifier, ...]:
    """Those advisers who are asked about a guest's text, or about that of somebody known."""
    return tuple(each for each in advisers if is_guest or each.everybody)


def rule(names: Sequence[str]) -> str:
    """The rule of a comment that waits for opinions."""
    return _WAITS + "+".join(names)


def awaited(said: str) -> tuple[str, ...]:
    """Whose opinions a comment with this rule waits for; nobody's where it is another rule."""
    return tuple(said.removeprefix(_WAITS).split("+")) if said.startswith(_WAITS) else ()


def in_words(names: Iterable[str]) -> str:
    """Advisers as moderators read of them."""
    return " and ".join(LABELS.get(name, name) for name in names)


def terms_in_words(adviser: Classifier) -> str:
    """On which terms an adviser is asked, in one line."""
    when = "before a comment is shown" if adviser.holds else "while a comment is shown"
    whom = "everybody's" if adviser.everybody else "guests'"
    then = "shown" if adviser.shows else "left to moderators"
    return f"asked {when}, {whom} comments; what he cannot be asked about is {then}"


def encode(value: Asked | Question | Sender) -> str:
    """A value as it is stored."""
    return msgspec.json.encode(value).decode()


def decode_asked(detail: str) -> Asked:
    """Who is to be asked, by an event's detail."""
    return msgspec.json.decode(detail, type=Asked)


def decode_question(content: str) -> Question:
    """The question of a message."""
    return msgspec.json.decode(content, type=Question)


def decode_sender(text: str) -> Sender:
    """Where a text came from, unsealed."""
    return msgspec.json.decode(text, type=Sender) if text else Sender()


def read(data: bytes) -> ClassifierAnswer:
    """An opinion off the wire: `{"verdict": ..., "reason": ...}`; what else is there is ignored.

    Raises:
        errors.BadInput: it is none.
    """
    try:
        return msgspec.json.decode(data, type=ClassifierAnswer)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise errors.BadInput("opinion", "is not a verdict with a reason") from error
