"""Decoding: turn the bytes of a request into a typed value or an error that names the field."""
