"""The ports of a running emulator: gRPC, HTTP and the data browser.

`grpc_server` serves the API. `admin_port` serves everything over HTTP: `rest_api`, `admin_rest`,
the commands for tests, and `browser_pages`, which display what `data_browser` reads. Programs start
both through `cli`, tests through `emulator.testing`.

Invariants:

1. The HTTP port answers only this machine, and refuses requests from another site's web page.
2. A request that waits for a lock never prevents the awaited request from running.
"""
