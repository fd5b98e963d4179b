"""The softmax of a biLM as static word vectors: the weights with which the model scores each word of its vocabulary."""

from __future__ import annotations

from pathlib import Path

from pyelmo.errors import InputError
from pyelmo.formats import resolve
from pyelmo.formats.pretrained import floats, predicted_words
from pyelmo.vectors.static import StaticVectors


def softmax_vectors(source: str | Path) -> StaticVectors:
    """Return a vector for each word that a model predicts.

    Args:
        source: A model with a softmax: a bundled model, a folder, a file or a Hub id.

    Returns:
        The rows of the softmax, without those of boundary tokens and unknown words.

    Raises:
        InputError: The model has no softmax, or an adaptive one.

    Example:
        >>> from pyelmo.vectors.softmax import softmax_vectors
        >>> softmax_vectors("en").analogy("king", "man", "woman", count=1)[0].word
        'queen'
    """
    model = resolve.read(source)
    words = predicted_words(model)
    if model.config.softmax_cutoffs:
        raise InputError(f"{model.source}: has an adaptive softmax, whose words have vectors of different sizes")
    name = "words.weight" if model.config.softmax_shares_words else "softmax.weight"
    kept = [row for row, word in enumerate(words) if word not in (words.begin, words.end, words.unknown)]
    return StaticVectors([words.words[row] for row in kept], floats(model.weights[name])[kept], name=str(source))
