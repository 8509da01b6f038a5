"""Taking over the comments of other systems, in two passes over one file.

`importing` plans (reads and checks everything, stores nothing) and writes. `disqus` and
`wordpress` read their formats on top of `xmlstream` and yield what `source` describes;
`ordering` decides which comment is written after which; `spool` keeps bodies out of memory;
`report` is what an operator reads.
"""
