"""Define the kind and keys for the numbers of declared counters.

A key name is the site's id, followed by the name of the number within its site: the counter's
generation and the number's place (`declared_counters`). The numbers of a counter are therefore a
range of keys, and so are the counter's numbers for a category with its subcategories.
"""

from comments.store.models import schema


class DeclaredCountRow(schema.StoredRow):
    """One number of a declared counter, never 0. Only `counters` writes this kind."""

    amount = schema.integer(indexed=False, required=True)


def declared_key(site: str, name: str) -> schema.RowKey:
    """Return the key of a number, given its name within its site."""
    return schema.RowKey(DeclaredCountRow, f"{site}/{name}")


def declared_count(site: str, name: str, amount: int) -> DeclaredCountRow:
    return DeclaredCountRow(key=declared_key(site, name), amount=amount)


def range_of(site: str, generation: int) -> tuple[str, str]:
    """Return the bounds of the key names of a generation; the second bound is excluded."""
    before = f"{site}/{generation}"
    return f"{before}/", f"{before}0"  # "0" is the next character after "/".
