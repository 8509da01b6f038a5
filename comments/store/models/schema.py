"""Extend NDB's model, key and property classes with public declarations and shorter paths.

NDB keeps a property's declaration in private attributes. These classes also keep the declaration in
public attributes, and register every kind by its name, so `wire.codec` can convert rows without
NDB.

A post reads and sets several hundred properties. NDB passes each value through a chain of hooks,
makes two objects for each key, and copies a key's path whenever its kind or id is read. These
classes skip this where the result is the same; NDB handles all other cases. For this purpose, this
module (and no other) uses private attributes of NDB: `_values`, the dictionary in which NDB keeps a
row's values, `_entity_key`, a row's key, and `_key`, the form in which NDB sends a key.
"""

import functools
import itertools
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from google.cloud import ndb

_LONGEST_INDEXED = 1500  # bytes
# Values that NDB returns as they were set. NDB wraps values that it has read itself.
AS_SET = frozenset({str, int, bool, bytes, datetime, type(None)})


class Declared(NamedTuple):
    """The declaration of a property."""

    is_indexed: bool
    is_required: bool
    is_repeated: bool
    default: Any


class RowKey(ndb.Key):
    """A key that keeps its path. The form that NDB sends is made when NDB first asks for it.

    Two such keys are equal if their paths are equal: a process uses one database at a time.
    """

    _path: tuple[tuple[str, str], ...]
    _reference = None

    def __new__(
        cls, kind: type[ndb.Model] | str, name: str, *more: str, parent: ndb.Key | None = None
    ) -> Self:
        """Make a key of kinds and names, the root's first, below `parent` if given."""
        made = object.__new__(cls)
        own = kind if isinstance(kind, str) else kind._get_kind(), name  # noqa: SLF001 - see above
        made._path = (own,) if parent is None else (*parent.pairs(), own)
        return cls(*more, parent=made) if more else made

    @functools.cached_property
    def _key(self) -> Any:
        return ndb.Key(*self.flat())._key  # noqa: SLF001 - see above

    def kind(self) -> str:
        return self._path[-1][0]

    def id(self) -> Any:
        return self._path[-1][1]

    def pairs(self) -> tuple[tuple[str, str], ...]:
        return self._path

    def flat(self) -> tuple[str, ...]:
        return tuple(itertools.chain.from_iterable(self._path))

    def __hash__(self) -> int:
        return hash(self._path)

    def __eq__(self, other: object) -> bool:
        if type(other) is RowKey:
            return self._path == other._path
        return super().__eq__(other)


if TYPE_CHECKING:
    StringProperty = ndb.StringProperty
    TextProperty = ndb.TextProperty
    IntegerProperty = ndb.IntegerProperty
    BooleanProperty = ndb.BooleanProperty
    BlobProperty = ndb.BlobProperty
    DateTimeProperty = ndb.DateTimeProperty
else:

    class _Declaring:
        """A mixin for NDB's properties that keeps the declaration."""

        _INDEXED = True  # NDB's own default for the type
        _AS_SET: type | None = None  # The type of values that NDB keeps without further checks.

        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            self.declared = Declared(
                bool(given.get("indexed", self._INDEXED)),
                bool(given.get("required")),
                bool(given.get("repeated")),
                given.get("default"),
            )

        def __get__(self, row: Any, kind: Any = None) -> Any:
            """Return the value, without NDB's hooks if they would return it unchanged."""
            if row is None:
                return self
            value = row.kept.get(self._name, self.declared.default)
            if type(value) in AS_SET and not self.declared.is_repeated:
                return value
            return super().__get__(row, kind)

        def __set__(self, row: Any, value: Any) -> None:
            """Set the value, without NDB's checks if `value` surely passes them unchanged."""
            kind = type(value)
            is_sure = value is None or kind is self._AS_SET
            if kind is str:
                # Each ASCII character has one byte. NDB must check the encoding of any other text.
                is_short = not self.declared.is_indexed or len(value) <= _LONGEST_INDEXED
                is_sure = is_sure and is_short and value.isascii()
            elif kind is datetime:
                is_sure = is_sure and value.tzinfo is UTC and self._tzinfo is not None
            if is_sure and not self.declared.is_repeated:
                row.kept[self._name] = value
            else:
                super().__set__(row, value)

    class StringProperty(_Declaring, ndb.StringProperty):
        """Text of up to 1,500 bytes."""

        _AS_SET = str

    class TextProperty(_Declaring, ndb.TextProperty):
        """Text of any length."""

        _AS_SET = str
        _INDEXED = False

    class IntegerProperty(_Declaring, ndb.IntegerProperty):
        """A 64-bit integer."""

        _AS_SET = int

    class BooleanProperty(_Declaring, ndb.BooleanProperty):
        """True or false."""

        _AS_SET = bool

    class BlobProperty(_Declaring, ndb.BlobProperty):
        """Bytes."""

        _AS_SET = bytes
        _INDEXED = False

    class DateTimeProperty(_Declaring, ndb.DateTimeProperty):
        """A point in time, with microsecond precision."""

        _AS_SET = datetime


class StoredRow(ndb.Model):
    """The base class of the stored kinds.

    For example, the class `CommentRow` stores the kind `Comment`.

    The names of the kinds must never change.
    """

    def __init_subclass__(cls) -> None:
        """Register the class under its kind."""
        super().__init_subclass__()
        KINDS[cls._get_kind()] = cls

    def __init__(self, *, key: ndb.Key | None = None, **values: Any) -> None:
        """Make a row. NDB accepts seven more names for the parts of a key."""
        # NDB's own dictionary of values by name. A value whose type is not in `AS_SET` must be read
        # as an attribute instead.
        self.kept = self._values = {}
        if key is not None:
            self.key = key
        properties = vars(type(self))
        for name, value in values.items():
            properties[name].__set__(self, value)

    @classmethod
    def _get_kind(cls) -> str:
        return cls.__name__.removesuffix("Row")

    @classmethod
    def made_of(cls, key: ndb.Key, values: dict[str, Any]) -> Self:
        """Make a row of values that are surely valid, because they were stored before."""
        made = cls.__new__(cls)
        made._entity_key, made.kept, made._values = key, values, values  # noqa: SLF001 - see above
        return made


KINDS: dict[str, type[StoredRow]] = {}
