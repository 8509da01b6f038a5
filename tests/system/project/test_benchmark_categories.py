"""The benchmark of categories asks for pages that exist, and finds the costs of the same pages."""

import pytest

from benchmarks import categories
from comments.store import connection
from datastore_emulator import inprocess


@pytest.mark.embedded
def test_a_page_of_a_category_costs_as_much_as_one_of_the_site(
    engine: inprocess.Engine, store: connection.Store
) -> None:
    threads = 400
    assert categories.fill(engine, threads) == threads * (1 + categories.SIZE)
    asked = {term: categories.pages(term, threads) for term in categories.TERMS}
    for name, ask in asked[""].items():
        rows, reads, entries = categories.costs(engine, ask)
        assert rows == (categories.LAST if name.endswith("last") else categories.LIMIT)
        for term in categories.TERMS[1:]:
            spent = categories.costs(engine, asked[term][name])
            assert spent == (rows, reads, entries), (name, term)
