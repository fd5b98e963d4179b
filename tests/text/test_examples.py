"""The examples in the docstrings of text/ and corpus/ run."""

from __future__ import annotations

import doctest

import pytest

from pyelmo.corpus import prepare
from pyelmo.text import tokens, vocabulary


@pytest.mark.parametrize("module", [tokens, vocabulary, prepare])
def test_the_examples_in_docstrings_run(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
