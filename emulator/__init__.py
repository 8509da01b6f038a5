"""A Datastore on one machine: the google.datastore.v1 API over SQLite.

Applications use `inprocess`, tests `testing` and `pytest_plugin`, everybody else
`python -m emulator`. All of them hand requests to `engine`, which calls the rooms:

    cli > server > admin_api > engine > import_export > transactions > execution
        > queries > storage > fault_injection > encoding

A room imports only those on its right. `old_names` keeps renamed modules importable.

Values up to `transactions` are NamedTuples, for requests make them by the thousand; values of the
other rooms, and those that compute a field, are frozen dataclasses.
"""

from emulator import old_names

old_names.install()
