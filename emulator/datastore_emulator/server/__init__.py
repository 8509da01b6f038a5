"""The ports of a running emulator: gRPC, HTTP and the data browser.

`grpc_server` serves the API. `admin_port` serves everything over HTTP: `rest_api`, `admin_rest`,
the test commands, and `browser_pages`, which display the data that `data_browser` reads. Programs
start both servers through `cli`, and tests start them through `datastore_emulator.testing`.

The HTTP port answers only programs on this machine, and refuses requests from web pages of other
sites. A request that waits for a lock never prevents the request that holds the lock from running.
"""
