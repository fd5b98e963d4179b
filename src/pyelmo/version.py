"""The version, which nothing needs to be imported for."""

__version__ = "0.1.0"
