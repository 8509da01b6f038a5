"""The HTTP server: a gunicorn worker whose threads never wait for a client.

`worker` runs one event loop and a pool of threads in each process. The loop reads a complete
request before a thread gets it. After the thread has finished, the loop sends the bytes that the
client has not accepted yet. New connections go to the process with the fewest. gunicorn starts and
stops the processes, and parses request heads. This package knows nothing of the application that it
serves.
"""
