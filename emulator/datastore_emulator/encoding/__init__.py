"""The stored bytes of keys, values, entities and indexes. No I/O.

Use `keys` and `values` to encode and decode, `entities` to check what may be stored, `indexes` for
index definitions and index entries, `index_yaml` for the text of an index.yaml, and
`property_paths` and `property_masks` for parts of an entity.

Invariants:

1. Encoded keys and values, compared byte by byte, sort in Datastore's order.
2. All encodings are stored in data files. Changing an encoding makes existing data files wrong;
   tests with golden values detect that.
"""
