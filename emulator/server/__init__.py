"""The ports of a running emulator: gRPC, HTTP and the pages for people.

`grpc_server` serves the API, `admin_port` everything over HTTP: `rest_api`, `admin_rest`, the
commands of tests, and `browser_pages`, which show what `data_browser` finds. Programs start both
through `cli`, tests through `emulator.testing`.

Invariants:

1. HTTP answers only this machine, and refuses requests that a foreign web page makes.
2. A request that waits for a lock never keeps the request that it waits for from running.
"""
