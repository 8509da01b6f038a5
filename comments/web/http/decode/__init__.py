"""Decoding: from the bytes of a request to a typed value, or an error that names the field."""
