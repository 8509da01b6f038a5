"""Define the base of the stored kinds: the declaration of properties, keys and rows.

A kind is a subclass of `StoredRow` whose attributes are declared with `string`, `text`, `integer`
and so on. A row keeps its values as plain attributes; `wire.codec` converts and checks them. Every
kind is registered by its name.
"""

import dataclasses
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

T = TypeVar("T")
TIME = "timestamp_value"


@dataclasses.dataclass(frozen=True, slots=True)
class Property(Generic[T]):
    """A property's declaration; `field` is the Value field that contains the property's values.

    The values of a property with `derive` are computed from the row whenever the row is written.
    """

    field: str
    is_indexed: bool
    is_required: bool = False
    is_repeated: bool = False
    default: Any = None
    derive: Callable[[Any], list[str]] | None = None

    if TYPE_CHECKING:  # In a row, an attribute contains its property's value.

        def __get__(self, row: Any, kind: Any = None) -> T: ...
        def __set__(self, row: Any, value: T | None) -> None: ...


def string(*, required: bool = False, default: str | None = None) -> Property[str]:
    """Declare an indexed text of at most 1,500 bytes."""
    return Property("string_value", is_indexed=True, is_required=required, default=default)


def strings(derive: Callable[[Any], list[str]] | None = None) -> Property[list[str]]:
    """Declare indexed texts."""
    return Property("string_value", is_indexed=True, is_repeated=True, derive=derive)


def text(*, required: bool = False, default: str | None = None) -> Property[str]:
    """Declare a text of any length."""
    return Property("string_value", is_indexed=False, is_required=required, default=default)


def texts() -> Property[list[str]]:
    """Declare texts that are not indexed."""
    return Property("string_value", is_indexed=False, is_repeated=True)


def integer(
    *, indexed: bool = True, required: bool = False, default: int | None = None
) -> Property[int]:
    """Declare a 64-bit integer."""
    return Property("integer_value", indexed, is_required=required, default=default)


def boolean(
    *, indexed: bool = True, required: bool = False, default: bool | None = None
) -> Property[bool]:
    """Declare a property that is true or false."""
    return Property("boolean_value", indexed, is_required=required, default=default)


def blob() -> Property[bytes]:
    """Declare bytes."""
    return Property("blob_value", is_indexed=False)


def time(*, indexed: bool = True, required: bool = False) -> Property[datetime]:
    """Declare a point in time, with microsecond precision and a time zone."""
    return Property(TIME, indexed, is_required=required)


class RowKey(tuple[tuple[str, str], ...]):
    """The key of a row: its path of kinds and names, starting with the root."""

    __slots__ = ()

    def __new__(
        cls, kind: "type[StoredRow] | str", name: str, *more: str, parent: "RowKey | None" = None
    ) -> Self:
        """Make a key from kinds and names, starting with the root, below `parent` if given."""
        own = (kind if isinstance(kind, str) else kind.KIND, name)
        made = super().__new__(cls, (*(parent or ()), own))
        return cls(*more, parent=made) if more else made

    def kind(self) -> str:
        """Return the row's kind."""
        return self[-1][0]

    def id(self) -> str:
        """Return the row's key name."""
        return self[-1][1]


class StoredRow:
    """The base class of the stored kinds.

    For example, the class `CommentRow` stores the kind `Comment`.

    The names of the kinds must never change.
    """

    KIND: ClassVar[str]
    COLUMNS: ClassVar[dict[str, Property[Any]]]
    LISTS: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        """Register the class under its kind, and set the defaults of its properties."""
        cls.KIND = cls.__name__.removesuffix("Row")
        cls.COLUMNS = {
            name: column for name, column in vars(cls).items() if isinstance(column, Property)
        }
        cls.LISTS = tuple(name for name, column in cls.COLUMNS.items() if column.is_repeated)
        for name, column in cls.COLUMNS.items():
            setattr(cls, name, column.default)
        KINDS[cls.KIND] = cls

    def __init__(self, *, key: RowKey, **values: Any) -> None:
        """Make a row.

        Raises:
            TypeError: the key is of another kind, or the kind has no such property.
        """
        if key[-1][0] != self.KIND or not values.keys() <= self.COLUMNS.keys():
            raise TypeError(f"{self.KIND} has no key {key} or no property of {[*values]}")
        for name in self.LISTS:
            values.setdefault(name, [])
        self.key = key
        vars(self).update(values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = ("key", *self.COLUMNS)
        return all(getattr(self, name) == getattr(other, name) for name in names)

    __hash__ = None  # type: ignore[assignment] # because values change

    def __repr__(self) -> str:
        return f"{type(self).__name__}({vars(self)})"

    def populate(self, **values: Any) -> None:
        """Set several properties."""
        vars(self).update(values)


KINDS: dict[str, type[StoredRow]] = {}
