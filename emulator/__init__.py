"""A Datastore on one machine: the google.datastore.v1 API over SQLite."""
