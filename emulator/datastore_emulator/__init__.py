"""A Datastore for one machine: the google.datastore.v1 API over SQLite.

Other projects import `inprocess`, `data_files`, `errors` and `protobufs`. Their tests also import
`testing`, `faults` and `pytest_plugin`. Other programs run `datastore-emulator`. Every entry point
passes requests to `engine`, which calls the rooms (packages):

    cli > server > admin_api > engine > import_export > transactions > execution
        > queries > storage > fault_injection > encoding

A room imports only the rooms to its right.

Value types in the rooms from `encoding` to `transactions` are NamedTuples, because each request
creates thousands of values. Value types in the other rooms are frozen dataclasses, and so are all
value types that compute a field.
"""

__version__ = "0.1.0"
