"""The commands of `flatthread`, and what they share.

`command_table` lists the commands; `console` opens the store and reports errors in one line.
"""
