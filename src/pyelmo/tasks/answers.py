"""What a trained task model answers about raw text: labels, spans and mentions with their probabilities.

    LabelAnswer          sentiment, nli    a label of the whole input, and the probability of every label
    SpansAnswer          ner, srl          labelled spans: LabelledSpan
    PassageAnswer        qa                the span of the passage that answers the question
    CoreferenceAnswer    coref             clusters of mentions: CoreferenceMention

Characters are counted from 0 in the text as it was given; `text[start:end]` is the span. Words that were given already
split count as a text with one space between two words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DIGITS = 6  # of probabilities in JSON


@dataclass(frozen=True, kw_only=True, repr=False)
class Answer:
    """What all answers have: the words that the model read, and its labels in the form that scores are computed from.

    Attributes:
        texts: The words of each text: of the sentence, of premise and hypothesis, of passage and question, or of the
            sentences of a document.
        labels: The prediction in the form of `pyelmo.tasks.load(...).evaluate` and of `answers-test.jsonl`.
        offsets: The start and end of the characters of each word of the first text, or of the document.
    """

    texts: tuple[tuple[str, ...], ...]
    labels: tuple[Any, ...]
    offsets: tuple[tuple[int, int], ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the first text."""
        return self.texts[0]


@dataclass(frozen=True, kw_only=True, repr=False)
class LabelAnswer(Answer):
    """The label of a text or of a pair of texts (sentiment, nli).

    Attributes:
        label: The most probable label.
        probability: Its probability.
        probabilities: The probability of each label; they sum to 1.

    Example:
        >>> answer = LabelAnswer(texts=(("A", "film"),), labels=("good",), probabilities={"bad": 0.25, "good": 0.75})
        >>> answer
        LabelAnswer('good', probability=0.7500)
        >>> answer.label, answer.probability
        ('good', 0.75)
        >>> answer.to_json()["probabilities"]
        {'bad': 0.25, 'good': 0.75}
    """

    probabilities: Mapping[str, float]

    @property
    def label(self) -> str:
        """The most probable label."""
        return str(self.labels[0])

    @property
    def probability(self) -> float:
        """The probability of the label."""
        return self.probabilities[self.label]

    def to_json(self) -> dict[str, Any]:
        """Return the answer as values of JSON.

        Returns:
            The label, its probability and the probabilities of all labels.
        """
        probabilities = {label: round(value, DIGITS) for label, value in self.probabilities.items()}
        own = {"label": self.label, "probability": probabilities[self.label], "probabilities": probabilities}
        return {"labels": self.labels, **own}

    def __repr__(self) -> str:
        return f"LabelAnswer({self.label!r}, probability={self.probability:.4f})"


@dataclass(frozen=True, kw_only=True, repr=False)
class LabelledSpan:
    """A span of a text with a label: an entity, or an argument of a predicate.

    Attributes:
        label: The label, without B- or I-.
        text: The characters of the span as they were given.
        start: The first character.
        end: The end of the characters.
        words: The first word and the end of the words.
        probability: The probability that exactly these words form a span with this label: the sum over all valid label
            sequences that have the span.

    Example:
        >>> span = LabelledSpan(label="PER", text="Ann Lee", start=0, end=7, words=(0, 2), probability=0.97)
        >>> span
        LabelledSpan('PER', 'Ann Lee', 0:7, probability=0.9700)
        >>> span.to_json()["start"]
        0
    """

    label: str
    text: str
    start: int
    end: int
    words: tuple[int, int]
    probability: float

    def to_json(self) -> dict[str, Any]:
        """Return the span as values of JSON.

        Returns:
            All attributes by name.
        """
        return {**vars(self), "probability": round(self.probability, DIGITS)}

    def __repr__(self) -> str:
        place = f"{self.start}:{self.end}"
        return f"LabelledSpan({self.label!r}, {self.text!r}, {place}, probability={self.probability:.4f})"


@dataclass(frozen=True, kw_only=True, repr=False)
class SpansAnswer(Answer):
    """The labelled spans of a sentence: its entities (ner), or the arguments of one predicate (srl).

    Attributes:
        labels: A BIO label for each word.
        spans: The spans in their order, with characters and probabilities.
        predicate: The position of the predicate's word (srl only).

    Example:
        >>> span = LabelledSpan(label="PER", text="Ann", start=0, end=3, words=(0, 1), probability=0.97)
        >>> answer = SpansAnswer(texts=(("Ann", "ran"),), labels=("B-PER", "O"), spans=(span,))
        >>> answer
        SpansAnswer([LabelledSpan('PER', 'Ann', 0:3, probability=0.9700)])
        >>> answer.to_json()["labels"]
        ('B-PER', 'O')
    """

    spans: tuple[LabelledSpan, ...]
    predicate: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the answer as values of JSON.

        Returns:
            The labels, the spans, and for srl the position of the predicate.
        """
        own = {} if self.predicate is None else {"predicate": self.predicate}
        return {"labels": self.labels, **own, "spans": [span.to_json() for span in self.spans]}

    def __repr__(self) -> str:
        predicate = "" if self.predicate is None else f", predicate={self.words[self.predicate]!r}"
        return f"SpansAnswer({list(self.spans)!r}{predicate})"


@dataclass(frozen=True, kw_only=True, repr=False)
class PassageAnswer(Answer):
    """The span of a passage that answers a question (qa).

    Attributes:
        text: The characters of the answer as they are in the passage.
        start: The first character.
        end: The end of the characters.
        probability: The probability of the span among all spans that are not longer than `network.longest` words.

    Example:
        >>> answer = PassageAnswer(texts=(("Ann", "ran"), ("Who", "?")), labels=("Ann", 0), end=3, probability=0.5)
        >>> answer
        PassageAnswer('Ann', 0:3, probability=0.5000)
        >>> answer.to_json()
        {'answer': 'Ann', 'start': 0, 'end': 3, 'probability': 0.5}
    """

    end: int
    probability: float

    @property
    def text(self) -> str:
        """The characters of the answer."""
        return str(self.labels[0])

    @property
    def start(self) -> int:
        """The first character of the answer."""
        return int(self.labels[1])

    def to_json(self) -> dict[str, Any]:
        """Return the answer as values of JSON.

        Returns:
            The text of the answer, its characters and its probability.
        """
        probability = round(self.probability, DIGITS)
        return {"answer": self.text, "start": self.start, "end": self.end, "probability": probability}

    def __repr__(self) -> str:
        return f"PassageAnswer({self.text!r}, {self.start}:{self.end}, probability={self.probability:.4f})"


@dataclass(frozen=True, kw_only=True, repr=False)
class CoreferenceMention:
    """A mention of a cluster.

    Attributes:
        text: The characters of the mention as they were given.
        start: The first character.
        end: The end of the characters.
        words: The first word and the end of the words, numbered over the document.
        antecedent: Which mention of the cluster, counted from 0, it was linked to; None for the first.
        probability: The probability of this link; for the first mention, that it has no antecedent.

    Example:
        >>> she = CoreferenceMention(text="She", start=9, end=12, words=(3, 4), antecedent=0, probability=0.8)
        >>> she
        CoreferenceMention('She', 9:12, antecedent=0, probability=0.8000)
        >>> she.to_json()["words"]
        (3, 4)
    """

    text: str
    start: int
    end: int
    words: tuple[int, int]
    antecedent: int | None
    probability: float

    def to_json(self) -> dict[str, Any]:
        """Return the mention as values of JSON.

        Returns:
            All attributes by name.
        """
        return {**vars(self), "probability": round(self.probability, DIGITS)}

    def __repr__(self) -> str:
        link = f"antecedent={self.antecedent}, probability={self.probability:.4f}"
        return f"CoreferenceMention({self.text!r}, {self.start}:{self.end}, {link})"


@dataclass(frozen=True, kw_only=True, repr=False)
class CoreferenceAnswer(Answer):
    """The clusters of a document: mentions that refer to the same thing (coref).

    Attributes:
        texts: The words of each sentence.
        labels: The first word and the end of each mention, by cluster; words are numbered over the document.
        clusters: The same mentions with characters and probabilities.

    Example:
        >>> ann = CoreferenceMention(text="Ann", start=0, end=3, words=(0, 1), antecedent=None, probability=0.9)
        >>> she = CoreferenceMention(text="She", start=9, end=12, words=(3, 4), antecedent=0, probability=0.8)
        >>> sentences = (("Ann", "ran", "."), ("She", "sat", "."))
        >>> answer = CoreferenceAnswer(texts=sentences, labels=(((0, 1), (3, 4)),), clusters=((ann, she),))
        >>> answer
        CoreferenceAnswer([['Ann' 0:3, 'She' 9:12]])
        >>> answer.to_json()["clusters"]
        (((0, 1), (3, 4)),)
    """

    clusters: tuple[tuple[CoreferenceMention, ...], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the answer as values of JSON.

        Returns:
            The sentences, the words of the clusters, and their mentions.
        """
        mentions = [[mention.to_json() for mention in cluster] for cluster in self.clusters]
        return {"sentences": self.texts, "clusters": self.labels, "mentions": mentions}

    def __repr__(self) -> str:
        clusters = (
            ", ".join(f"{mention.text!r} {mention.start}:{mention.end}" for mention in cluster)
            for cluster in self.clusters
        )
        return f"CoreferenceAnswer([{', '.join(f'[{mentions}]' for mentions in clusters)}])"
