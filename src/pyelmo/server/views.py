"""What the views of the explorer show, as plain values for JSON. Nothing here knows of HTTP.

    context    a word in several sentences: points that move from layer to layer, and cosines
    mix        the products of layers from which the page computes the neighbours of any mix
    expects    the log probability of each word, and the likeliest words for a gap
    unknown    the known words nearest to an unknown one, by layer

L layers, N occurrences, M other words, D vector, P vector of one direction, V known words.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyelmo.arrays import Float32Array, Float64Array
from pyelmo.embed.embedder import Embedder
from pyelmo.embed.substitutes import Place
from pyelmo.errors import InputError
from pyelmo.server.marks import Sentence, choose_word, read_sentence
from pyelmo.text.lines import numbered_lines
from pyelmo.text.vocabulary import Vocabulary
from pyelmo.vectors.static import unit_vectors

MOST_SENTENCES = 24
FREQUENT = 150  # words that are too frequent to say something as neighbours
CANDIDATES = 60  # known words by their spelling, and as many by the context, that upper layers compare
SUBSTITUTES = 5  # words in the place of an occurrence
WINDOW = 12  # words on each side of an unknown word that these layers read


def read_sentences(texts: Sequence[str], model: Embedder) -> list[Sentence]:
    """Split texts into words; a text without asterisks gets the word that is marked elsewhere or that all share."""
    if len(texts) > MOST_SENTENCES:
        raise InputError(f"{len(texts)} sentences; at most {MOST_SENTENCES} are shown")
    return choose_word([read_sentence(text, model.language) for text in texts], model.lexicon.vocab)


def context(model: Embedder, texts: Sequence[str]) -> dict[str, Any]:
    """Return the points and the cosines of a word in several sentences, by layer, and what could stand in its place."""
    sentences = read_sentences(texts, model)
    answer: dict[str, Any] = {"sentences": [sentence.to_json() for sentence in sentences], "layers": []}
    places = [(number, position) for number, sentence in enumerate(sentences) for position in sentence.positions]
    answer["occurrences"] = [
        {"sentence": number, "position": position, "parts": sentences[number].parts(position)}
        for number, position in places
    ]
    if places:
        arrays = model.embed([sentence.words for sentence in sentences])
        units = unit_vectors(np.stack([arrays[number][:, position] for number, position in places], axis=1))
        points, shown = aligned_points(units)
        cosines = np.einsum("lnd,lmd->lnm", units, units)
        answer["layers"] = [
            {"points": _rounded(points[layer]), "cosines": _rounded(cosines[layer]), "shown": round(shown[layer], 4)}
            for layer in range(len(units))
        ]
        if model.predicts_words:
            answer["substitutes"] = substitutes(model, [(sentences[number].words, at) for number, at in places])
    return answer


def substitutes(model: Embedder, places: Sequence[Place]) -> dict[str, Any]:
    """Return the likeliest words in each place, and the cosines of their distributions."""
    vectors = np.stack(list(model.substitute_vectors(places)))  # (N, V)
    assert model.lexicon.vocab is not None
    likeliest = np.argsort(-vectors, axis=1, kind="stable")[:, :SUBSTITUTES]
    words = [[model.lexicon.vocab.words[word] for word in row] for row in likeliest.tolist()]
    return {"words": words, "cosines": _rounded(vectors @ vectors.T)}


def aligned_points(units: Float32Array) -> tuple[Float64Array, list[float]]:  # (L, N, D) -> (L, N, 2), L shares
    """Return the points of each layer on two axes that all layers share.

    Each layer is centred, because layers differ in what all their vectors have in common. The axes are the first two
    principal components of all layers together, so a point between two layers is the projection of a vector between
    them. The shares are those of each layer's own variance that the plane shows.
    """
    centred = units.astype(np.float64) - units.mean(1, keepdims=True, dtype=np.float64)
    stacked = centred.reshape(-1, centred.shape[-1])
    _, _, axes = np.linalg.svd(stacked, full_matrices=False)
    axes = np.concatenate([axes[:2], np.zeros((2 - min(2, len(axes)), axes.shape[1]))])
    points = centred @ axes.T
    # The sign of an axis is arbitrary: here the largest coordinate is positive, so that a map can be reproduced.
    flat = points.reshape(-1, 2)
    points = points * np.where(flat[np.abs(flat).argmax(0), [0, 1]] < 0, -1.0, 1.0)
    variance, plane = (centred**2).sum((1, 2)), (points**2).sum((1, 2))
    return points, np.where(variance > 1e-9, plane / np.maximum(variance, 1e-12), 1.0).tolist()


@dataclass(frozen=True, eq=False)
class Words:
    """Words in sentences with the vectors of all their layers."""

    texts: list[list[str]]  # before the word, the word as it is written, after it
    words: list[str]
    layers: Float32Array  # (L, M, D)


def frequent_words(model: Embedder) -> set[str]:
    """Return the most frequent words of a model's vocabulary, which is in the order of falling frequency."""
    vocab = model.lexicon.vocab
    return {word.casefold() for word in (vocab.words if vocab is not None else ())[:FREQUENT]}


def read_words(model: Embedder, sentences: Sequence[Sentence]) -> Words:
    """Return the words of sentences that are neither punctuation nor very frequent."""
    frequent = frequent_words(model)
    texts, words, vectors = [], [], []
    for sentence, layers in zip(sentences, model.embed([sentence.words for sentence in sentences]), strict=True):
        for position, span in enumerate(sentence.spans):
            if _says_something(span.word) and span.word.casefold() not in frequent:
                texts.append(sentence.parts(position))
                words.append(span.word)
                vectors.append(layers[:, position])
    size = (model.config.layers, 0, model.config.dim)
    return Words(texts, words, np.stack(vectors, axis=1) if vectors else np.zeros(size, np.float32))


def _says_something(word: str) -> bool:
    """Whether a word has a letter, and is not an ending of a Korean verb that begins inside a syllable (ᆫ다)."""
    return any(map(str.isalpha, word)) and not "\u1100" <= word[0] <= "\u11ff"


def bundled_texts(language: str) -> list[str]:
    """Return the bundled sentences in a language; there are some in English and in Korean."""
    name = language.partition("-")[0]
    if name not in ("en", "ko"):
        return []
    from pyelmo.probes.senses import list_path  # an import that would delay the start of the server

    return [line.split("\t")[2] for _, line in numbered_lines(list_path(name))]


@functools.lru_cache(maxsize=8)
def bundled_words(model: Embedder) -> Words:
    """Return the words of the bundled sentences in the language of a model."""
    return read_words(model, [read_sentence(text, model.language) for text in bundled_texts(model.language)])


def mix(model: Embedder, texts: Sequence[str], query: int) -> dict[str, Any]:
    """Return the products of the layers of a word and of other words, in the given and in bundled sentences.

    The word is the one between asterisks in the sentence `query`. The page mixes layers itself: with shares s, the
    product of two mixed vectors is s' G s, where G (L, L) has the products of the layers of one word with those of the
    other.
    """
    sentences = read_sentences(texts, model)
    answer: dict[str, Any] = {"sentences": [sentence.to_json() for sentence in sentences], "words": []}
    if not 0 <= query < len(sentences) or not sentences[query].positions:
        return answer
    sentence, position = sentences[query], sentences[query].positions[0]
    layers = model.embed([sentence.words])[0][:, position]  # (L, D)
    others = [other for other in sentences if other is not sentence]
    answer["own"] = _significant(layers @ layers.T)
    answer["word"] = sentence.parts(position)
    for words, bundled in ((read_words(model, others), False), (bundled_words(model), True)):
        cross = np.einsum("id,jmd->mij", layers, words.layers)  # (M, L, L)
        own = np.einsum("imd,jmd->mij", words.layers, words.layers)
        answer["words"] += [
            {"text": text, "bundled": bundled, "cross": one, "own": two}
            for text, one, two in zip(words.texts, _significant(cross), _significant(own), strict=True)
            if text != answer["word"]  # a bundled sentence may be the given one
        ]
    return answer


def expects(model: Embedder, text: str, gap: int | None, count: int = 10) -> dict[str, Any]:
    """Return the log probabilities of the words of a sentence, and the likeliest words in place of one of them."""
    sentence = read_sentence(text, model.language)
    words = sentence.words
    answer: dict[str, Any] = {"sentence": sentence.to_json(), "scores": [], "guesses": {}}
    if not words:
        return answer
    answer["scores"] = [
        {"forward": score.forward, "backward": score.backward, "known": score.known} for score in model.score(words)
    ]
    if gap is not None:
        if not 0 <= gap < len(words):
            raise InputError(f"word {gap} does not exist; the sentence has {len(words)} words")
        blank = [*words[:gap], "___", *words[gap + 1 :]]
        for direction in ("forward", "backward", "both") if model.config.bidirectional else ("forward",):
            guesses = model.predict(blank, count=count, direction=direction)
            answer["guesses"][direction] = [[guess.word, round(guess.probability, 6)] for guess in guesses]
    return answer


@functools.lru_cache(maxsize=8)
def known_words(model: Embedder) -> tuple[list[str], Float32Array]:
    """Return the words of a model's vocabulary and their unit vectors (V, P) in the token layer."""
    vocab = model.lexicon.vocab
    if vocab is None:
        raise InputError("the model has no list of known words. Choose another model")
    special = {vocab.begin, vocab.end, vocab.unknown}
    words = [word for word in vocab.words if word not in special and any(map(str.isalnum, word))]
    return words, unit_vectors(model.word_table().vectors(words))


def similar_words(model: Embedder, word: str, count: int) -> list[tuple[str, float]]:
    """Return the known words nearest to a word in the token layer, which does not see the sentence."""
    words, vectors = known_words(model)
    cosines = vectors @ unit_vectors(model.word_table().vectors([word]))[0]
    order = np.argsort(-cosines, kind="stable")[: count + 1].tolist()
    return [(words[row], float(cosines[row])) for row in order if words[row] != word][:count]


def unknown(model: Embedder, text: str, count: int = 8) -> dict[str, Any]:
    """Return the known words nearest to the marked word of a sentence, by layer.

    The token layer sees only the letters, so it is compared with all known words. The layers above see the sentence, so
    known words are put in the place of the word: those with the nearest letters, and those that the model expects.
    """
    sentence = read_sentence(text, model.language, whole=True)
    if not sentence.positions:
        sentence = replace(sentence, positions=_first_unknown(sentence, model.lexicon.vocab))
    answer: dict[str, Any] = {"sentence": sentence.to_json(), "layers": []}
    if not sentence.positions:
        return answer
    position = sentence.positions[0]
    word = sentence.words[position]
    before = sentence.words[max(position - WINDOW, 0) : position]
    after = sentence.words[position + 1 : position + 1 + WINDOW]
    spelt = similar_words(model, word, CANDIDATES)
    candidates = [other for other, _ in spelt]
    if before + after and model.config.softmax is not None:
        expected = model.predict([*before, "___", *after], count=CANDIDATES)
        candidates += [guess.word for guess in expected if guess.word != word]
    candidates = list(dict.fromkeys(candidates))
    arrays = model.embed([[*before, other, *after] for other in (word, *candidates)])
    stacked = unit_vectors(np.stack([layers[:, len(before)] for layers in arrays], axis=1))  # (L, 1 + M, D)
    nearest = [[[other, round(cosine, 4)] for other, cosine in spelt[:count]]]
    for layer in stacked[1:]:
        cosines = layer[1:] @ layer[0]
        best = np.argsort(-cosines, kind="stable")[:count].tolist()
        nearest.append([[candidates[row], round(float(cosines[row]), 4)] for row in best])
    vocabulary = known_words(model)[0]
    facts = {"is_known": word in vocabulary, "vocabulary": len(vocabulary), "candidates": CANDIDATES}
    return {**answer, **facts, "layers": nearest}


def _first_unknown(sentence: Sentence, vocab: Vocabulary | None) -> tuple[int, ...]:
    """Return the position of the first word that is not known, or of the only word."""
    words = [position for position, word in enumerate(sentence.words) if any(map(str.isalnum, word))]
    if len(words) > 1:
        words = [position for position in words if vocab is not None and sentence.words[position] not in vocab]
    return tuple(words[:1])


def _rounded(values: Any) -> Any:
    return np.round(np.asarray(values, dtype=np.float64), 4).tolist()


def _significant(values: Float32Array) -> Any:
    """Round products, whose size depends on the model, to five digits."""
    return np.array([float(f"{value:.5g}") for value in values.ravel()]).reshape(values.shape).tolist()
