"""The stored bytes of keys, values, entities and indexes. No I/O.

Use `keys` and `values` to encode and decode, `entities` to check what may be stored, `indexes` for
index definitions and the entries of an entity, `index_yaml` for the text of an index.yaml,
`property_paths` and `property_masks` for parts of an entity.

Invariants:

1. Encoded keys and values sort byte by byte in Datastore's order.
2. Every encoding is stored. Changing an encoding makes existing data files wrong; the tests contain
   golden values.
"""
