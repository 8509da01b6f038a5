"""Signing, sealing and hashing with the service's secret.

Doors: `encryption` (readable with the secret only), `keyed_hashes` (comparable with the secret
only), `cursors` (signed positions), `proof_of_work`. Every use names its purpose, so that a value
made for one purpose is worthless for another.
"""
