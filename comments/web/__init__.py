"""HTTP: the API, the pages of the service, and the widget's files.

Only this package, `cli` and `app` use Flask. The package reads the clock and the request, and
passes both to other packages as plain values. A view decodes the request, calls one function of
another package, and encodes the result.
"""
