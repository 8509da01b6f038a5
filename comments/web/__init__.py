"""HTTP: the API, its guests, its headers, and the pages of the service itself.

Everything that knows Flask lives here, in `cli` and in `app`. This is the rim: it reads the
clock and the request, and passes both inward as plain values.
"""
