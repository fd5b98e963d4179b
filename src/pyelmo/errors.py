"""All exceptions of pyelmo, and its warning.

    PyelmoError
    ├── InputError          an argument, a sentence or a line of input is invalid        (also a ValueError)
    ├── ConfigError         a setting is unknown or invalid                              (also a ValueError)
    ├── FormatError         the content of a file is invalid                             (also a ValueError)
    │   └── UnsafeFileError a file could run code, or an archive could write elsewhere or fill the disk
    ├── NotFoundError       a model, a file or a name does not exist                     (also a FileNotFoundError)
    ├── OutputError         an output cannot be written                                  (also an OSError)
    ├── DivergedError       the loss of a training run is not a finite number            (also an ArithmeticError)
    └── MissingExtraError   an optional dependency is not installed                      (also an ImportError)

    ScriptWarning           a text is in a script that the model hardly saw               (a UserWarning)

A message says what is wrong, where, what was found, and what to do. The command line prints it as one line.
"""

from __future__ import annotations

import importlib

GPU_FULL = 75  # exit status of a command that ran out of GPU memory; it may succeed later


class PyelmoError(Exception):
    """The base class of all errors that pyelmo raises on purpose.

    Example:
        >>> import pyelmo
        >>> try:
        ...     pyelmo.load("no-such-model")
        ... except pyelmo.PyelmoError as error:
        ...     print(type(error).__name__)
        NotFoundError
    """


class InputError(PyelmoError, ValueError):
    """An argument, a sentence or a line of input is invalid."""


class ConfigError(PyelmoError, ValueError):
    """A setting is unknown or invalid."""


class FormatError(PyelmoError, ValueError):
    """The content of a file is invalid."""


class UnsafeFileError(FormatError):
    """A file could only be read by running code from it, or an archive would write elsewhere or fill the disk."""


class NotFoundError(PyelmoError, FileNotFoundError):
    """A model, a file or a name does not exist."""


class OutputError(PyelmoError, OSError):
    """An output cannot be written."""


class DivergedError(PyelmoError, ArithmeticError):
    """The loss or the gradient of a training run is not a finite number."""


class MissingExtraError(PyelmoError, ImportError):
    """An optional dependency is not installed."""


class ScriptWarning(UserWarning):
    """A text is in a script that the model hardly saw in training. A model warns once."""


def missing_extra(extra: str, what: str) -> MissingExtraError:
    return MissingExtraError(f"{what} needs an optional dependency. Install it with: pip install 'pyelmo[{extra}]'")


def require_torch(what: str) -> None:
    """Raise an error that says what needs torch, unless it can be imported."""
    try:
        importlib.import_module("torch")
    except ImportError:
        raise missing_torch(what) from None


def missing_torch(what: str) -> MissingExtraError:
    return MissingExtraError(f"{what} needs torch. Install it with: pip install 'pyelmo[torch]'")
