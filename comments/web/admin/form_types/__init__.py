"""The types of the queries and forms of the console."""
