"""The program `flatthread`: its version and its command."""

__version__ = "0.1.0"
