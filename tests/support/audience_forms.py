"""Make audiences as JSON, and evaluate them with plain sets: the tests' oracle for audiences."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from comments.domain.counters import audiences

Form = dict[str, Any]


def questions(sources: Sequence[Form], *, most: int = 6) -> st.SearchStrategy[dict[str, Form]]:
    """Return up to three named audiences of up to `most` of these sources, of any allowed depth."""
    chosen = st.lists(st.sampled_from(sources), min_size=1, max_size=most)
    return chosen.flatmap(
        lambda some: st.dictionaries(st.sampled_from("abc"), _forms(some), min_size=1)
    )


def _forms(sources: Sequence[Form]) -> st.SearchStrategy[Form]:
    found: st.SearchStrategy[Form] = st.sampled_from(sources)
    for _ in range(audiences.DEEPEST):
        found = st.sampled_from(sources) | _combinations(found)
    return found.filter(lambda form: 3 * _mentions(form) <= audiences.MOST_MENTIONS)


def _combinations(inner: st.SearchStrategy[Form]) -> st.SearchStrategy[Form]:
    some, any_number = st.lists(inner, min_size=1, max_size=2), st.lists(inner, max_size=2)
    return st.fixed_dictionaries({"any": some}, optional={"all": some, "but": any_number}) | (
        st.fixed_dictionaries({"all": some}, optional={"but": any_number})
    )


def _mentions(form: Form) -> int:
    lists = [form.get(name, ()) for name in ("all", "any", "but")]
    return sum(_mentions(each) for found in lists for each in found) or 1


def question(named: dict[str, Form]) -> audiences.Question:
    """Make a question as callers do, from JSON."""
    return audiences.question(audiences.decode_named(msgspec.json.encode(named)))


def members(form: Form, of_source: Callable[[Form], set[str]]) -> set[str]:
    """Return the members of an audience, given the authors in each source."""
    if not {"any", "all"} & form.keys():
        return of_source(form)
    every, some, but = (
        [members(each, of_source) for each in form.get(name, ())] for name in ("all", "any", "but")
    )
    if some:
        every.append(set().union(*some))
    return set.intersection(*every) - set().union(*but)
