"""The HTTP server: a gunicorn worker whose threads never wait for a client.

In each process, asyncio's event loop reads complete requests and sends answers (`connections`), and
a pool of threads runs a WSGI application (`worker`). gunicorn starts and stops the processes, and
its incremental parser reads heads and bodies. This package knows nothing of the application that it
serves.
"""
