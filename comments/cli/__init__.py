"""The commands of `flask --app main`, one module for each noun.

`commands` lists them; `console` opens the store and turns refusals into one line.
"""
