"""The classes of older libraries with their names, arguments and shapes, so that a program changes one import."""

from pyelmo.errors import require_torch

require_torch("pyelmo.compat")
