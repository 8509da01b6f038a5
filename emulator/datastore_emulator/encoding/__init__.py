"""The stored bytes of keys, values, entities and indexes. No I/O.

Use `keys` and `values` to encode and decode, `entities` to check what may be stored, `indexes` for
index definitions and index entries, `index_yaml` for the text of an index.yaml, and
`property_paths` and `property_masks` for parts of an entity.

Invariant: Encoded keys and values, compared byte by byte, sort in Datastore's order
(test_values.py::test_bytes_sort_as_values_do).

Invariant: All encodings are stored in data files, so changing an encoding makes existing data files
wrong (test_values.py::test_the_stored_bytes_of_a_value_are_fixed).
"""
