"""Values and rules without a store, a clock or a request behind them.

Owns the sort hash, the records that travel between rooms, ids, roles, and what may be said of a
comment in public. `text` cleans what people write; `crypto` signs, seals and hashes.

Invariant: nothing here does I/O or reads the clock; the import contracts hold it to that.
"""
