"""One-line aggregation queries: COUNT, SUM and AVG over a test's entities."""

from typing import Any

from emulator.tests.support import service_calls


def over(
    name: str, operator: str = "sum", alias: str = ""
) -> dict[str, dict[str, dict[str, str]] | str]:
    return {operator: {"property": {"name": name}}, "alias": alias}


def batch(
    service: service_calls.Service, query: Any, *asked: dict[str, Any], **options: Any
) -> Any:
    return service.call(
        "RunAggregationQuery",
        aggregation_query={"nested_query": query, "aggregations": asked},
        read_options=options,
    ).batch


def run(
    service: service_calls.Service, query: Any, *asked: dict[str, Any], **options: Any
) -> dict[str, Any]:
    """Run aggregations and return each result by its alias."""
    (result,) = batch(service, query, *asked, **options).aggregation_results
    return {
        alias: None if value.WhichOneof("value_type") == "null_value" else service.python(value)
        for alias, value in result.aggregate_properties.items()
    }


def one(
    service: service_calls.Service, query: Any, *asked: dict[str, Any], **options: Any
) -> list[Any]:
    """Run aggregations without aliases and return the results in order."""
    found = run(service, query, *asked, **options)
    return [found[f"property_{number + 1}"] for number in range(len(asked))]


def put_all(service: service_calls.Service, *properties: dict[str, Any]) -> None:
    """Store the entities T:1, T:2, ... with the given properties."""
    service.commit(
        *(
            {"upsert": service.entity(service.key("T", place + 1), **each)}
            for place, each in enumerate(properties)
        )
    )
