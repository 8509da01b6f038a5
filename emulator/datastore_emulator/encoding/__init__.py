"""The stored bytes of keys, values, entities and indexes. No I/O.

Use `keys` and `values` to encode and decode, and `entities` to check what may be stored. `indexes`
defines indexes and their entries, and `index_yaml` parses and formats the text of an index.yaml.
Use `property_paths` and `property_masks` for parts of an entity.

Invariant: Encoded keys and values, compared byte by byte, sort in Datastore's order
(test_values.py::test_bytes_sort_as_values_do).

Invariant: All encodings are stored in data files, so changing an encoding makes existing data files
wrong (test_values.py::test_the_stored_bytes_of_a_value_are_fixed).
"""
