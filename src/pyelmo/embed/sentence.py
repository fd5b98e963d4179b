"""One vector per sentence by the sentence form of a model, and how that form is made from the words of a text.

    corpora or text --> counts of words --> weights of words, and the common directions of their vectors

T words of a sentence, P vector of one direction, D vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.embed.engines.word_table import WordTable
from pyelmo.embed.stream import VectorOptions, split_windows
from pyelmo.errors import InputError
from pyelmo.formats.pretrained import Pretrained
from pyelmo.formats.sentence import SentenceForm, common_directions, word_weights

WINDOW = 8192  # tokens that are looked up at a time
WORDS = 20_000  # words whose vectors have the common directions


def model_form(model: Pretrained, layers: Any) -> SentenceForm:
    """Return the sentence form of a model; `layers` must be "all", because the form reads the token layer."""
    if model.sentence is None:
        raise InputError(
            f"{model.source}: has no sentence form for pooling 'sentence'. Choose 'mean', or add the form with "
            "`elmo sentences MODEL TEXT`"
        )
    if not isinstance(layers, str) or layers != "all":
        raise InputError(f"layers {layers!r}: pooling 'sentence' always reads the token layer. Leave out layers")
    return model.sentence


def stream_sentences(
    form: SentenceForm, table: WordTable, sentences: Iterable[list[str]], directions: int, options: VectorOptions
) -> Iterator[Any]:
    """Yield the vector of each sentence (D,). No LSTM runs: the token layer has the token vector in each direction."""
    for words, lengths in split_windows(sentences, WINDOW):
        vectors, start = table.vectors(words), 0
        for end in lengths.cumsum().tolist():
            pooled = np.tile(form.pool(words[start:end], vectors[start:end]), directions)
            start = end
            yield options.convert(pooled.astype(options.dtype, copy=False))


def make_form(table: WordTable, counts: Counter[str], *, smoothing: float, directions: int) -> SentenceForm:
    """Return a sentence form for a model, given its word table and the counts of the words of a text."""
    if not counts:
        raise InputError("the text has no words. Name a text like those that the model will read")
    frequent = sorted(word for word, _ in counts.most_common(WORDS))
    return SentenceForm(word_weights(counts, smoothing), common_directions(table.vectors(frequent), directions))


def corpus_counts(folders: Sequence[str | Path], language: str) -> Counter[str]:
    """Return the counts of the words in the training text of prepared corpora."""
    from pyelmo.corpus.corpus import Corpus  # not needed to embed

    counts: Counter[str] = Counter()
    for folder in folders:
        corpus = Corpus.open(folder)
        if (own := corpus.manifest.settings.language) != language:
            raise InputError(
                f"{folder}: its words are split by the rules of {own!r}, those of the model by {language!r}"
            )
        counts.update(dict(zip(corpus.types, corpus.counts.tolist(), strict=True)))
    return +counts  # without the special tokens, whose count is 0
