"""HTTP: the API, the pages of the service, and the widget's files.

Everything that knows Flask is here, in `cli` and in `app`. This room reads the clock and the
request, and passes both inward as plain values: views decode, call one function of a room, encode.
"""
