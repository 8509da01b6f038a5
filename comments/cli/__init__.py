"""The commands of `flatthread`, and the code that they share.

`command_table` lists the commands; `console` opens the store and reports errors in one line.
"""
