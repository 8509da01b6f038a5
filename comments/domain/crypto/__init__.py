"""Signing, encryption and hashing with the service's secret.

The entry points are `encryption` (readable only with the secret), `keyed_hashes` (comparable only
with the secret), `cursors` (signed positions) and `proof_of_work`. Each use of the secret names its
purpose, so a value made for one purpose is worthless for any other.
"""
