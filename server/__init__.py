"""The HTTP server: a gunicorn worker whose threads never wait for a client.

`worker` runs one event loop and a pool of threads in each process. The loop reads a request to its
last byte before a thread gets it, and sends what the client has not taken yet after the thread is
free again. gunicorn starts and stops the processes, parses heads and forms answers. This package
knows nothing of the application that it serves.
"""
