"""Signing, encryption and hashing with the service's secret.

Entry points: `encryption` (readable only with the secret), `keyed_hashes` (comparable only with the
secret), `cursors` (signed positions), `proof_of_work`. Every use names its purpose, so a value made
for one purpose is worthless for another.
"""
