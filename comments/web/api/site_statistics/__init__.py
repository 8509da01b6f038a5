"""The calls of `/api/v1` for statistics, and the types of their queries and responses."""
