"""Define the commands of `flask --app main`, one module for each noun.

`commands` lists the entry points; `console` opens the store and reports errors in one line.
"""
