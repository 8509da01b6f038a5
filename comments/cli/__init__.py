"""Define the commands of `flatthread`, one module for each noun.

`commands` lists the entry points; `console` opens the store and reports errors in one line.
"""
