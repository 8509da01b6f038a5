"""The description of the API: the list of its calls, and the OpenAPI document made from it."""
