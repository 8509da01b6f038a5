"""Aggregation queries in one line each: COUNT, SUM and AVG over what a test has put."""


def over(name, operator="sum", alias=""):
    return {operator: {"property": {"name": name}}, "alias": alias}


def batch(service, query, *asked, **options):
    return service.call(
        "RunAggregationQuery",
        aggregation_query={"nested_query": query, "aggregations": asked},
        read_options=options,
    ).batch


def run(service, query, *asked, **options):
    """Run aggregations and return each answer by its alias."""
    (result,) = batch(service, query, *asked, **options).aggregation_results
    return {
        alias: None if value.WhichOneof("value_type") == "null_value" else service.python(value)
        for alias, value in result.aggregate_properties.items()
    }


def one(service, query, *asked, **options):
    """Run aggregations without aliases and return their answers in order."""
    found = run(service, query, *asked, **options)
    return [found[f"property_{number + 1}"] for number in range(len(asked))]


def put_all(service, *properties):
    """Store entities T:1, T:2 ... with these properties."""
    service.commit(
        *(
            {"upsert": service.entity(service.key("T", place + 1), **each)}
            for place, each in enumerate(properties)
        )
    )
