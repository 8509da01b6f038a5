"""The sort hash: a comment's place in its thread as a string that sorts in reading order.

A hash consists of one *segment* per level, root first. A segment is a *number* written in the
scheme's digits, which sort in ASCII order. Comparing two hashes as strings therefore compares the
two paths of numbers: depth first, siblings by number, a parent before everything below it. One
query ordered by this string returns the whole discussion, and everything below a comment is one
contiguous range.

Invariant: No segment is a prefix of another, so a hash is a string prefix of another hash only if
its comment is an ancestor (test_sorthash.py::test_a_hash_is_a_prefix_of_its_descendants_alone).

Two hashes therefore first differ within segments of the same level.

If all segments had the same width, none could be a prefix of another, but the numbers would run out
at `base ** width` siblings. Longer segments therefore begin with one of two letters that are not
digits and sort above all digits:

    first     width digits           numbers 0 ..                      AZ
    second    y + (width + 1) digits the next base ** (width + 1)      yAAA
    third     z + (width + 3) digits the next base ** (width + 3)      zAAAAA

A short segment never begins with `y` or `z`, so a longer segment cannot start with a shorter one.
Both letters sort above every digit, so strings sort like numbers across the three classes. Numbers
are never reused (`tree`), so a hash that was once assigned never denotes a different comment.

With the default scheme (base 50, width 2), two letters encode 2,500 siblings, four letters 127,500
and six letters 312,627,500. Roots are numbered from 0 and children from 1. In the *padded* form,
zero segments replace missing levels, so a 0 below the root means "this node itself".

The alternatives are worse. A parent link alone needs a query per level. Nested-set intervals
rewrite half the thread for each reply. Numbers in decimal or dotted form ("1.10" < "1.9") sort
incorrectly.

Hashes are stored, so changing the two class letters would corrupt every thread. Each thread stores
its scheme; `tree/schemes/scheme_change` moves a thread to another scheme.
"""

import dataclasses
import functools
import json
import re
from collections.abc import Iterator

LONG = "y"
LONGER = "z"
DEFAULT_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwx"
DEFAULT_WIDTH = 2
DEFAULT_LEVELS = 8
MOST_WIDTH = 8
MOST_LEVELS = 100
# Python's pattern for digits accepts other scripts, so the digits are listed.
_SLUG = re.compile("[1-9][0-9]{0,18}(-[1-9][0-9]{0,18})*")
# This character sorts above every digit and class letter.
ABOVE = "{"


class BadSortHash(ValueError):
    """A string is not a hash of this scheme, or a number does not fit the scheme."""


@dataclasses.dataclass(frozen=True, slots=True)
class Scheme:
    """The digits and width in which numbers are written, and the number of levels of a tree.

    Raises:
        BadSortHash: there are fewer than two digits, the digits are not in ASCII order or not below
            `y`, or the width or number of levels is below one.
    """

    digits: str = DEFAULT_DIGITS
    width: int = DEFAULT_WIDTH
    levels: int = DEFAULT_LEVELS

    def __post_init__(self) -> None:
        """Refuse schemes whose strings would not sort in the order of their numbers."""
        ordered = "".join(sorted(set(self.digits)))
        if len(self.digits) < 2 or ordered != self.digits:  # noqa: PLR2004
            raise BadSortHash(f"digits must be at least two, distinct and ascending: {self.digits}")
        if not self.digits.isascii() or self.digits[-1] >= LONG:
            raise BadSortHash(f"digits must be ASCII and sort below {LONG!r}: {self.digits}")
        if self.width < 1 or self.levels < 1:
            raise BadSortHash("width and levels must be at least 1")

    @property
    def base(self) -> int:
        """Return the number of digits."""
        return len(self.digits)


def encode_scheme(scheme: Scheme) -> str:
    """Encode a scheme in the stored format: JSON [digits, width, levels]."""
    return json.dumps([scheme.digits, scheme.width, scheme.levels], separators=(",", ":"))


@functools.lru_cache(maxsize=64)
def decode_scheme(stored: str) -> Scheme:
    """Decode a stored scheme."""
    return Scheme(*json.loads(stored))


@dataclasses.dataclass(frozen=True, slots=True)
class _Class:
    """A class of segments with the same length.

    The segments start with `lead` and encode the numbers from `first` to `last`.
    """

    lead: str
    width: int
    first: int
    last: int


@functools.cache
def _classes(scheme: Scheme) -> tuple[_Class, ...]:
    classes: list[_Class] = []
    first = 0
    for lead, width in (("", 0), (LONG, 1), (LONGER, 3)):
        last = first + scheme.base ** (scheme.width + width) - 1
        classes.append(_Class(lead, scheme.width + width, first, last))
        first = last + 1
    return tuple(classes)


@functools.cache
def _values(scheme: Scheme) -> dict[str, int]:
    return {digit: value for value, digit in enumerate(scheme.digits)}


def last_number(scheme: Scheme) -> int:
    """Return the greatest number that a segment can encode."""
    return _classes(scheme)[-1].last


def encode_segment(scheme: Scheme, number: int) -> str:
    """Encode a number as a segment.

    Raises:
        BadSortHash: `number` is negative or above `last_number`.
    """
    for klass in _classes(scheme):
        if klass.first <= number <= klass.last:
            return klass.lead + _in_digits(scheme, number - klass.first, klass.width)
    raise BadSortHash(f"{number} is not between 0 and {last_number(scheme)}")


def _in_digits(scheme: Scheme, value: int, width: int) -> str:
    text = ""
    for _ in range(width):
        value, digit = divmod(value, scheme.base)
        text = scheme.digits[digit] + text
    return text


def decode_segment(scheme: Scheme, segment: str) -> int:
    """Decode the number in a segment.

    Raises:
        BadSortHash: `segment` is not exactly one segment of `scheme`.
    """
    klass = _class_at(scheme, segment, 0)
    digits = segment[len(klass.lead) :]
    if len(digits) != klass.width:
        raise BadSortHash(f"not exactly one segment: {segment!r}")
    values, base, value = _values(scheme), scheme.base, 0
    for digit in digits:
        if digit not in values:
            raise BadSortHash(f"{digit!r} is not a digit: {segment!r}")
        value = value * base + values[digit]
    return klass.first + value


def _class_at(scheme: Scheme, sort_hash: str, start: int) -> _Class:
    short, long, longer = _classes(scheme)
    lead = sort_hash[start : start + 1]
    if lead == LONG:
        return long
    return longer if lead == LONGER else short


def segments(scheme: Scheme, sort_hash: str) -> Iterator[str]:
    """Yield the segments of a hash, root first. A truncated last segment is yielded unchanged."""
    start = 0
    while start < len(sort_hash):
        klass = _class_at(scheme, sort_hash, start)
        end = start + len(klass.lead) + klass.width
        yield sort_hash[start:end]
        start = end


def to_numbers(scheme: Scheme, sort_hash: str) -> tuple[int, ...]:
    """Return a hash's path of numbers, root first.

    Raises:
        BadSortHash: the string is empty or is not a hash of `scheme`.
    """
    if not sort_hash:
        raise BadSortHash("a hash must have at least one segment")
    return tuple(decode_segment(scheme, part) for part in segments(scheme, sort_hash))


def child(scheme: Scheme, parent: str, number: int) -> str:
    """Return the hash of child `number` below `parent`.

    For a root, `parent` is the empty string.
    """
    return parent + encode_segment(scheme, number)


def ancestors(scheme: Scheme, sort_hash: str) -> tuple[str, ...]:
    """Return the hashes of all ancestors of a comment, root first."""
    parts = list(segments(scheme, sort_hash))
    return tuple("".join(parts[:end]) for end in range(1, len(parts)))


def level(scheme: Scheme, sort_hash: str) -> int:
    """Return the comment's depth; a root has depth 0."""
    return sum(1 for _ in segments(scheme, sort_hash)) - 1


def pad(scheme: Scheme, sort_hash: str) -> str:
    """Return the padded hash, for tables: a zero segment stands for each missing level."""
    missing = scheme.levels - 1 - level(scheme, sort_hash)
    return sort_hash + encode_segment(scheme, 0) * max(missing, 0)


def subtree_range(sort_hash: str) -> tuple[str, str]:
    """Return the half-open range `low <= hash < high` of a comment and everything below it.

    The range contains nothing else in the thread, because no other hash has this hash as a prefix.
    """
    return sort_hash, sort_hash + ABOVE


def slug(scheme: Scheme, sort_hash: str) -> str:
    """Return the path for permalinks; "3-1" is the first reply to the third root."""
    root, *below = to_numbers(scheme, sort_hash)
    return "-".join(str(number) for number in (root + 1, *below))


def from_slug(scheme: Scheme, text: str) -> str:
    """Return the hash that a slug names.

    Raises:
        BadSortHash: the text is not a slug, or a number does not fit the scheme.
    """
    if not _SLUG.fullmatch(text):
        raise BadSortHash(f"not a slug: {text!r}")
    root, *below = map(int, text.split("-"))
    return "".join(encode_segment(scheme, number) for number in (root - 1, *below))
