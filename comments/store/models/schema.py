"""Extend NDB's model and property classes with public declarations.

NDB keeps a property's declaration in private attributes. These classes also keep the declaration in
public attributes, and register every kind by its name, so `wire.codec` can convert rows without
NDB.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from google.cloud import ndb


class Declared(NamedTuple):
    """The declaration of a property."""

    is_indexed: bool
    is_required: bool
    is_repeated: bool
    default: Any


class _Declaring:
    """A mixin for NDB's properties that keeps the declaration."""

    _INDEXED = True  # NDB's own default for the type

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.declared = Declared(
            bool(given.get("indexed", self._INDEXED)),
            bool(given.get("required")),
            bool(given.get("repeated")),
            given.get("default"),
        )


if TYPE_CHECKING:
    StringProperty = ndb.StringProperty
    TextProperty = ndb.TextProperty
    IntegerProperty = ndb.IntegerProperty
    BooleanProperty = ndb.BooleanProperty
    BlobProperty = ndb.BlobProperty
    DateTimeProperty = ndb.DateTimeProperty
else:

    class StringProperty(_Declaring, ndb.StringProperty):
        """Text of up to 1,500 bytes."""

    class TextProperty(_Declaring, ndb.TextProperty):
        """Text of any length."""

        _INDEXED = False

    class IntegerProperty(_Declaring, ndb.IntegerProperty):
        """A 64-bit integer."""

    class BooleanProperty(_Declaring, ndb.BooleanProperty):
        """True or false."""

    class BlobProperty(_Declaring, ndb.BlobProperty):
        """Bytes."""

        _INDEXED = False

    class DateTimeProperty(_Declaring, ndb.DateTimeProperty):
        """A point in time, with microsecond precision."""


class StoredRow(ndb.Model):
    """The base class of the stored kinds.

    For example, the class `CommentRow` stores the kind `Comment`.

    The names of the kinds must never change.
    """

    def __init_subclass__(cls) -> None:
        """Register the class under its kind."""
        super().__init_subclass__()
        KINDS[cls._get_kind()] = cls

    @classmethod
    def _get_kind(cls) -> str:
        return cls.__name__.removesuffix("Row")


KINDS: dict[str, type[StoredRow]] = {}
