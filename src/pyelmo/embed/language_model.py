"""What a biLM expects: guesses for a gap, scores of words, perplexity. These are methods of `Embedder`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence

from pyelmo.arrays import Float32Array
from pyelmo.config import ModelConfig
from pyelmo.embed import perplexity, scoring, substitutes
from pyelmo.embed.engines.cpu import CpuEngine
from pyelmo.embed.engines.softmax import WordSoftmax
from pyelmo.embed.engines.word_table import WordTable
from pyelmo.embed.layers import layer_picker
from pyelmo.embed.perplexity import Context, Perplexity
from pyelmo.embed.scoring import Direction, Guess, SentenceScore, WordPredictor
from pyelmo.embed.stream import VectorOptions, stream_vectors
from pyelmo.embed.substitutes import Place
from pyelmo.errors import InputError
from pyelmo.formats.pretrained import Pretrained, predicted_words
from pyelmo.text.marked import read_gap, read_one_marked
from pyelmo.text.scripts import ScriptCheck
from pyelmo.text.tokens import split_sentences

Sentence = str | Sequence[str]


class LanguageModel(ABC):
    """The methods of an embedder that predict words. They need a model with a softmax."""

    pretrained: Pretrained
    language: str
    _scripts: ScriptCheck

    @property
    @abstractmethod
    def config(self) -> ModelConfig: ...

    @abstractmethod
    def tokenise(self, sentence: Sentence, number: int = 0) -> list[str]: ...

    @abstractmethod
    def word_table(self) -> WordTable: ...

    @abstractmethod
    def _build_modules(self) -> Pretrained: ...

    @abstractmethod
    def _softmax(self) -> WordSoftmax: ...

    @property
    def predicts_words(self) -> bool:
        """Whether the model has a softmax and its words, which `predict`, `score` and `perplexity` need."""
        return self.config.softmax is not None and self.pretrained.lexicon.vocab is not None

    def predict(
        self,
        sentence: Sentence,
        *,
        count: int = 10,
        direction: Direction | None = None,
        punctuation: bool = False,
    ) -> list[Guess]:
        """Return the likeliest words for a gap.

        With both directions, a word is judged by the product of their probabilities, divided by a power of the word's
        own probability, which the product counts twice. That is estimated from its rank in the vocabulary, whose order
        is that of falling frequency.

        Args:
            sentence: A string or a list of words with one gap, written `___`. A string is split as a whole.
            count: How many words to return.
            direction: "forward" reads the words before the gap, "backward" those after it, "both" reads all (default:
                both, but forward if nothing follows the gap).
            punctuation: Also return punctuation, which often fits anywhere.

        Returns:
            Guesses, the likeliest first, each with `word`, `probability` (its share among all candidates), `forward`
            and `backward` (the log probabilities of each direction; None for a direction that is not used).

        Raises:
            InputError: The sentence does not have exactly one gap, or the model cannot predict words.

        Example:
            >>> import pyelmo
            >>> model = pyelmo.load("en")
            >>> model.predict("He scored a ___ in the second half .", count=3)[0].word
            'goal'
            >>> [guess.word for guess in model.predict("The fish was jumping out of the ___", count=2)]
            ['water', 'boat']
        """
        if count < 1:
            raise InputError(f"count is {count}; it must be at least 1")
        before, after = read_gap(sentence if isinstance(sentence, str) else self.tokenise(sentence), self.language)
        self._scripts.check([*before, *after])
        return scoring.predict(
            self._predictor(), before, after, count=count, direction=direction, punctuation=punctuation
        )

    def substitutes(self, sentence: str | Place, *, count: int = 10) -> list[Guess]:
        """Return the words that could stand in the place of a word.

        The model reads the word: it guesses what follows "the grassy bank or" and what comes before "or bank". A model
        of a language other than English and Korean guesses the gap in the place of the word, as `predict` does.

        Args:
            sentence: A string with asterisks around one word, or the words of a sentence and the position of one.
            count: How many words to return.

        Returns:
            Guesses as those of `predict`, the likeliest first, without the word itself.

        Raises:
            InputError: Not exactly one word is marked, or the model cannot predict words.

        Example:
            >>> import pyelmo
            >>> model = pyelmo.load("en")
            >>> [guess.word for guess in model.substitutes("She is a *doctor*.", count=3)]
            ['nurse', 'surgeon', 'physician']
            >>> "stream" in [guess.word for guess in model.substitutes("the grassy *bank*")]
            True
        """
        if count < 1:
            raise InputError(f"count is {count}; it must be at least 1")
        words, position = read_one_marked(sentence, self.language) if isinstance(sentence, str) else sentence
        self._scripts.check(words)
        return substitutes.substitutes(self._predictor(), (words, position), self.language, count)

    def substitute_vectors(self, places: Iterable[Place]) -> Iterator[Float32Array]:
        """Yield a vector for each word in its sentence: the distribution of what could stand in its place.

        These vectors tell the senses of a word apart better than those of the layers do, above all in short phrases,
        and take the time of two sentences and a softmax each.

        Args:
            places: Tokenised sentences, each with the position of the word.

        Returns:
            An iterator over one vector (words of the softmax,) of length 1 for each place: the square roots of the
            probabilities of its substitutes.

        Raises:
            InputError: The model cannot predict words.

        Example:
            >>> import pyelmo
            >>> model = pyelmo.load("en")
            >>> places = [(["a", "bank", "loan"], 1), (["the", "bank", "lent"], 1), (["the", "grassy", "bank"], 2)]
            >>> loan, lent, grassy = model.substitute_vectors(places)
            >>> bool(loan @ lent > loan @ grassy)
            True
        """
        return substitutes.substitute_vectors(self._predictor(), places, self.language)

    def score(self, sentence: Sentence, *, direction: Direction = "both") -> SentenceScore:
        """Return the log probability of each word of a sentence, in both directions.

        The probability of `<UNK>` is that of all out-of-vocabulary words together. One such word gets an equal share of
        it, as if there were as many as words in the vocabulary: no unknown word is likelier than the known ones only
        because it stands for all others.

        Args:
            sentence: A string or a list of words.
            direction: "forward", "backward" or "both".

        Returns:
            A sequence of one score per word, with `word`, `forward` and `backward` (natural logarithms; None for a
            direction that is not asked for) and `known` (whether the word is in the vocabulary). Its `end` is the score
            of the sentence's end; its `forward` and `backward` are the sums with the end, the log probability of the
            sentence; its `unknown` counts the out-of-vocabulary words.

        Raises:
            InputError: The model cannot predict words.

        Example:
            >>> import pyelmo
            >>> scores = pyelmo.load("en").score("The bank of the river .")
            >>> [score.word for score in scores]
            ['The', 'bank', 'of', 'the', 'river', '.']
            >>> scores[3].forward > scores[1].forward
            True
            >>> round(sum(score.forward for score in [*scores, scores.end]) - scores.forward, 9)
            0.0
        """
        return next(self.score_sentences([sentence], direction=direction))

    def score_sentences(
        self,
        sentences: Iterable[Sentence],
        *,
        direction: Direction = "both",
        advance: Callable[[int], None] | None = None,
    ) -> Iterator[SentenceScore]:
        """Yield the scores of each sentence, for any amount of text in constant memory.

        Args:
            sentences: Strings or lists of words, read as they are needed.
            direction: As in `score`.
            advance: Called with the number of further words whenever some are computed, for a progress bar.

        Returns:
            An iterator over what `score` returns for each sentence.

        Raises:
            InputError: The model cannot predict words; or, during the iteration, a sentence cannot be used.

        Example:
            >>> import pyelmo
            >>> right, wrong = pyelmo.load("en").score_sentences(["He drank tea .", "He drank sea ."])
            >>> right.forward > wrong.forward
            True
        """
        tokenised = (self.tokenise(sentence, number) for number, sentence in enumerate(sentences))
        return scoring.score(self._predictor(), tokenised, direction=direction, advance=advance)

    def _predictor(self) -> WordPredictor:
        """Return what predicts words, or raise an error that says what the model lacks."""
        vocab = predicted_words(self.pretrained)
        self.word_table()  # packs the weights, so that the softmax reads only its own
        return WordPredictor(self.pretrained.source, self.config, vocab, self._softmax(), self._top_layers)

    def _top_layers(self, sentences: Iterable[list[str]]) -> Iterator[Float32Array]:
        pick = layer_picker("top", self.config)
        options = VectorOptions(pick=pick, pooling=None, keep_boundaries=True, dtype="float32")
        # The smallest windows: scores appear early, and a progress bar moves often.
        return stream_vectors(self.word_table(), sentences, options, batch_size=None, window=0)

    def perplexity(
        self,
        documents: Iterable[str | Sequence[Sentence]],
        *,
        context: Context = "document",
        batch_size: int = 32,
        advance: Callable[[int], None] | None = None,
    ) -> Perplexity:
        """Return the perplexity of documents, forward and backward, with the full softmax.

        Args:
            documents: Each is a string, which is split into sentences, or a list of sentences (strings or lists of
                words).
            context: "document" carries the state of the LSTMs from one sentence of a document to the next; "sentence"
                starts each sentence from zero.
            batch_size: Documents, or sentences, computed at once; it does not change the result.
            advance: Called with the number of further predictions whenever some are computed, for a progress bar.

        Returns:
            The perplexities `forward`, `backward` and `average`, the number of predicted `words` (with sentence ends)
            and how many of them are `unknown` to the model.

        Raises:
            InputError: There is no text, or the model cannot predict words.

        Example:
            >>> import pyelmo
            >>> result = pyelmo.load("en").perplexity(["The bank of the river. A bank account."])
            >>> result.words
            12
            >>> 1 < result.average < 1000
            True
        """
        if isinstance(documents, str):
            raise InputError("documents is a single string; pass a list: perplexity([text])")
        sentences = map(self._document, documents)
        engine = self.word_table().engine
        if not isinstance(engine, CpuEngine):
            from pyelmo.embed.engines import torch_perplexity

            return torch_perplexity.perplexity(
                self._build_modules(), sentences, context=context, batch_size=batch_size, advance=advance
            )
        predictor = self._predictor()

        def compute(texts: list[perplexity.Document]) -> Iterator[perplexity.Losses]:
            lexicon = self.pretrained.lexicon
            return perplexity.engine_losses(engine, lexicon, predictor, texts, batch_size=batch_size)

        return perplexity.perplexity(compute, predictor.vocab, sentences, context=context, advance=advance)

    def _document(self, document: str | Sequence[Sentence]) -> list[list[str]]:
        if isinstance(document, str):
            document = [sentence for line in document.splitlines() for sentence in split_sentences(line, self.language)]
        return [self.tokenise(sentence, number) for number, sentence in enumerate(document)]
