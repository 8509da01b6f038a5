"""Compare the numbers of declared counters with a count of the comments: the tests' oracle."""

from comments.domain.counters import declared_counters
from comments.domain.counters.counting import CountedChange
from comments.domain.counters.declared_counters import CountPlace
from comments.store import reads
from comments.store.models import event_rows
from comments.tree.counters.declared import declarations
from tests.support.histories import counter_oracle

Numbers = dict[str, dict[CountPlace, int]]  # By the names of the counters.


def stored(site: str = "demo") -> Numbers:
    """Return all stored numbers of a site, also of generations that no counter has."""
    names = {each.generation: each.declaration.name for each in declarations.of_site(site).counters}
    found: Numbers = {name: {} for name in names.values()}
    for message in reads.fetch(reads.Query("DeclaredCount")):
        here, _, name = message.key.path[0].name.partition("/")
        generation = declared_counters.generation_of(name)
        if here == site:
            numbers = found.setdefault(names.get(generation, f"removed {generation}"), {})
            numbers[declared_counters.place_of(name)] = message.properties["amount"].integer_value
    return found


def expected(site: str = "demo") -> Numbers:
    """Count the comments."""
    changes = [
        CountedChange(None, state) for state in counter_oracle.states() if state.site == site
    ]
    return {
        each.declaration.name: {
            declared_counters.place_of(name): amount
            for name, amount in declared_counters.increments([each], changes).items()
        }
        for each in declarations.of_site(site).counters
    }


def assert_counted(site: str = "demo") -> None:
    """Check that all counters are complete and exact, and that nothing else is left."""
    assert counter_oracle.events() == []
    assert reads.get(event_rows.job_key(f"counters/{site}")) is None
    assert declarations.of_site(site).is_settled
    assert stored(site) == expected(site)
