"""Define the commands of `flask --app main`, one module for each noun.

Entry points: `commands` lists them; `console` opens the store and reports errors in one line.
"""
