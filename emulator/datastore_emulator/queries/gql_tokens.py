"""GQL tokens: split a query's text; if the text is wrong, report where, and what was expected.

The types of tokens are the keywords in upper case, the symbols, and the names of the groups in
`_TOKEN`. Keywords are the words that Google's service reserves, including words that have no
function.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from datastore_emulator import errors

NAME = "a name"
STRING = "a string"
INTEGER = "an integer"
DOUBLE = "a double"
BINDING = "a binding"
END = "the end"
MAX_NESTING = 40  # Protobuf refuses messages that are nested deeper than 100 levels.

_KEYWORDS = re.compile(
    "AGGREGATE|ALL|ANCESTOR|AND|ANY|AS|ASC|AVG|BETWEEN|BINARY|BY|CHILD|CONTAINS|COUNT|COUNT_UP_TO|"
    "CURSOR|DESC|DESCENDANT|DISTINCT|DIV|FALSE|FROM|GROUP|HAS|HAVING|IN|IS|JOIN|LIKE|LIMIT|MOD|NOT|"
    "NULL|OFFSET|ON|OR|ORDER|OVER|PARENT|REGEXP|RLIKE|SELECT|SUBSET|SUM|SUPERSET|TRUE|WHERE|XOR",
    re.ASCII | re.IGNORECASE,
)
_TYPES = {
    "name": NAME, "quoted": NAME, "string": STRING, "integer": INTEGER, "double": DOUBLE,
    "binding": BINDING,
}  # fmt: skip
_WORD = r"[A-Za-z_$\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*"
_QUOTED = r"""{0}(?:[^{0}\\\n]|{0}{0}|\\[\\0bnrtZ'"`%_])*{0}"""
_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+)"
    r"|(?P<double>[+-]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+))"
    r"|(?P<integer>[+-]?[0-9]+)"
    rf"|(?P<string>{_QUOTED.format(chr(39))}|{_QUOTED.format(chr(34))})"
    rf"|(?P<quoted>{_QUOTED.format(chr(96))})"
    rf"|(?P<name>{_WORD})"
    rf"|(?P<binding>@(?:[0-9]+|{_WORD}))"
    r"|(?P<symbol>[!<>]=|[()*,=<>+.])"
)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_ESCAPED |= {"%": "\\%", "_": "\\_"}  # The backslash remains, as in MySQL


class Token(NamedTuple):
    """A part of the text; `text` is unquoted for strings and names."""

    type: str
    text: str
    start: int
    end: int


class Tokens:
    """The tokens of a query, read from left to right.

    Raises:
        errors.InvalidArgument: A part of the text is not a token.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._place = 0
        self._expected: list[str] = []
        self._depth = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._place]

    def is_call(self) -> bool:
        """Return whether the next tokens are an unquoted name and an opening parenthesis."""
        is_name = self.next.type == NAME and self._text[self.next.start] != "`"
        return is_name and self._tokens[self._place + 1].type == "("

    def take(self, *types: str) -> Token | None:
        """Take the next token if it has one of the types."""
        token = self.next
        if token.type in types:
            self._place += token.type != END
            self._expected.clear()
            return token
        self._expected += types
        return None

    def require(self, *types: str) -> Token:
        """Take the next token, or refuse the query if the token has a different type."""
        return self.take(*types) or self.fail()

    def open(self) -> None:
        """Take an opening parenthesis."""
        token = self.require("(")
        self._depth += 1
        if self._depth > MAX_NESTING:
            self.refuse(token, f"parentheses are nested deeper than {MAX_NESTING} levels")

    def close(self) -> None:
        """Take a closing parenthesis."""
        self.require(")")
        self._depth -= 1

    def fail(self, *expected: str) -> NoReturn:
        """Refuse the query because of its next token."""
        *others, last = dict.fromkeys(map(_excerpt, [*self._expected, *expected]))
        wanted = f"{', '.join(others)} or {last}" if others else last
        actual = _excerpt(self._text[self.next.start : self.next.end] or END)
        self.refuse(self.next, f"found {actual}, expected {wanted}")

    def refuse(self, token: Token, problem: str) -> NoReturn:
        """Refuse the query because of one of its tokens."""
        self._refuse_at(token.start, problem)

    def _refuse_at(self, start: int, problem: str) -> NoReturn:
        line = self._text.count("\n", 0, start) + 1
        column = start - self._text.rfind("\n", 0, start)
        raise errors.InvalidArgument(f"GQL at line {line}, column {column}: {problem}.")

    def _split(self) -> Iterator[Token]:
        start = 0
        while start < len(self._text):
            match = _TOKEN.match(self._text, start)
            if match is None:
                self._refuse_at(
                    start, f"{self._text[start]!r} begins no complete word, number or string"
                )
            if match.lastgroup != "space":
                yield _token(match)
            start = match.end()
        yield Token(END, "", start, start)


def _token(match: re.Match[str]) -> Token:
    group, text = str(match.lastgroup), match.group()
    if group in ("string", "quoted"):
        return Token(_TYPES[group], _unquote(text), *match.span())
    if group == "name" and text.isascii() and _KEYWORDS.fullmatch(text):
        return Token(text.upper(), text, *match.span())
    return Token(_TYPES.get(group, text), text, *match.span())


def _excerpt(part: str) -> str:
    return part[:40] if part[0].isalnum() else f'"{part[:40]}"'


def _unquote(text: str) -> str:
    quote = text[0]
    return re.sub(
        rf"\\(.)|{quote}{quote}",
        lambda match: _ESCAPED.get(match[1], match[1]) if match[1] else quote,
        text[1:-1],
    )
