"""Values and rules that need no store, clock or request.

This package owns the sort hash, the records that packages exchange, ids, roles, and the public form
of a comment. `text` cleans what people write; `crypto` signs, encrypts and hashes.
"""
