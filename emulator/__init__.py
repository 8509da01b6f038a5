"""A Datastore on one machine: the google.datastore.v1 API over SQLite.

Applications use `inprocess`, tests `testing` and `pytest_plugin`, other programs `python -m
emulator`. All of them hand requests to `engine`, which calls the rooms:

    cli > server > admin_api > engine > import_export > transactions > execution
        > queries > storage > fault_injection > encoding

A room imports only rooms to its right. `old_names` keeps renamed modules importable.

Values in the rooms up to `transactions` are NamedTuples, because requests create thousands of them.
Values in other rooms, and values that compute a field, are frozen dataclasses.
"""

from emulator import old_names

old_names.install()
