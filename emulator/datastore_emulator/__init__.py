"""A Datastore for one machine: the google.datastore.v1 API over SQLite.

Other projects use `inprocess`, `data_files`, `errors` and `protobufs`, their tests also `testing`,
`faults` and `pytest_plugin`; other programs run `datastore-emulator`. Every entry point passes
requests to `engine`, which calls the rooms (packages):

    cli > server > admin_api > engine > import_export > transactions > execution
        > queries > storage > fault_injection > encoding

A room imports only the rooms to its right.

Value types in the rooms from `encoding` to `transactions` are NamedTuples, because each request
creates thousands of values. Value types in other rooms, and those that compute a field, are frozen
dataclasses.
"""

__version__ = "0.1.0"
