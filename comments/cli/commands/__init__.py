"""The commands, one module for each noun; `command_table` lists them."""
