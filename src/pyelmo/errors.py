"""Every error that pyelmo raises on purpose.

    PyelmoError
    ├── InputError          an argument, a sentence or a line of input cannot be used   (also a ValueError)
    ├── ConfigError         a setting is unknown or impossible                           (also a ValueError)
    ├── FormatError         a file is not what it should be                              (also a ValueError)
    │   └── UnsafeFileError a file wants to run code
    ├── NotFoundError       a model, file or name that is not there                      (also a FileNotFoundError)
    ├── OutputError         something cannot be written                                  (also an OSError)
    ├── DivergedError       a training run whose loss is no longer a number              (also an ArithmeticError)
    └── MissingExtraError   an optional dependency is not installed                      (also an ImportError)

A message says what, where, got, and what to do. The command line prints it as one line.
"""

from __future__ import annotations

GPU_FULL = 75  # status of a command for which a GPU had no memory left: later it may have


class PyelmoError(Exception):
    """The root: catch this to catch them all."""


class InputError(PyelmoError, ValueError):
    """An argument, a sentence or a line of input that cannot be used."""


class ConfigError(PyelmoError, ValueError):
    """A setting that is unknown or impossible."""


class FormatError(PyelmoError, ValueError):
    """A file that is not what it should be."""


class UnsafeFileError(FormatError):
    """A file that could only be read by running code from it."""


class NotFoundError(PyelmoError, FileNotFoundError):
    """A model, file or name that is not there."""


class OutputError(PyelmoError, OSError):
    """Something that cannot be written."""


class DivergedError(PyelmoError, ArithmeticError):
    """A training run whose loss or gradient is no longer a number."""


class MissingExtraError(PyelmoError, ImportError):
    """An optional dependency that is not installed."""


def missing_extra(extra: str, what: str) -> MissingExtraError:
    return MissingExtraError(f"{what} needs an extra that is not installed: pip install 'pyelmo[{extra}]'")
