"""Sentences -> arrays: `pyelmo.load("en").embed(["A bank account."])`.

    words --> WordTable (one vector per distinct word) --> engine (the LSTM layers) --> chosen layers --> arrays

L layers (the token layer included), T tokens of a sentence, D vector.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from pyelmo.config import ModelConfig
from pyelmo.embed.engines.build import Precision as Precision
from pyelmo.embed.engines.build import (
    build_engine,
    build_softmax,
    check_choice,
    check_precision,
    default_threads,
    parameter_versions,
    torch_engine,
    usable_device,
)
from pyelmo.embed.engines.softmax import WordSoftmax
from pyelmo.embed.engines.word_table import WordTable
from pyelmo.embed.language_model import LanguageModel, Sentence
from pyelmo.embed.layers import SENTENCE, WORDS, LayerChoice, check_pooling, layer_picker
from pyelmo.embed.sentence import model_form, stream_sentences
from pyelmo.embed.stream import VectorOptions, check_words, stream_vectors, stream_words
from pyelmo.errors import InputError
from pyelmo.formats import hub
from pyelmo.formats import resolve as formats
from pyelmo.formats.pretrained import Pretrained, Weights
from pyelmo.parallel import fork_safe_lock
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.marked import read_marked
from pyelmo.text.normalisation import normalise_words
from pyelmo.text.scripts import ScriptCheck
from pyelmo.text.tokens import check_language, split_within, split_words, written_words
from pyelmo.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    import torch

    from pyelmo.model.bilm import Batch, BiLM
    from pyelmo.model.elmo import Elmo

# Bytes of results that `stream` may hold. Sentences within them are sorted by length, so that batches need little
# padding.
WINDOW_BYTES = 64 * 2**20

Measure = Literal["vectors", "substitutes"]


def load(
    source: str | Path,
    *,
    revision: str | None = None,
    options: str | Path | None = None,
    vocab: str | Path | Vocabulary | None = None,
    align: str | Path | None = None,
    device: str | torch.device = "cpu",
    language: str | None = None,
    precision: Precision = "float32",
    threads: int | None = None,
) -> Embedder:
    """Load a pretrained model, ready to embed.

    Args:
        source: A folder, a file or an archive (.zip, .tar.gz) of any format that pyelmo reads, its address
            ("https://...", if wished with "#sha256=..."), the name of a bundled model ("en", "ko"), or a Hub id
            ("user/name").
        revision: The branch, tag or commit of a Hub id (default: the newest version). "user/name@revision" says the
            same.
        options: The options.json of AllenNLP or bilm-tf, if it is not beside the weights.
        vocab: A vocabulary, or a file with one word per line, for a model that reads or predicts words and has none
            beside its weights.
        align: The align.pth of AllenNLP's multilingual models, a matrix that maps the vectors of this model into the
            space that its languages share. It changes what `embed`, `stream` and `encode` return, and is not saved.
        device: Where to compute: "cpu", "cuda", "cuda:1", ...
        language: The rules that split strings into words: "en", "ko", "ko-morph" or "general" (default: those of the
            model's training text if known, else "general").
        precision: "float32", "int8" (CPU only: a quarter of the memory, and faster) or "bfloat16" (GPU only).
        threads: CPU threads (default: as many as torch uses if it is imported, else as OMP_NUM_THREADS or the
            number of cores allows).

    Returns:
        The model with everything that it needs to read text.

    Raises:
        NotFoundError: There is no such model or file.
        FormatError: A file is damaged, or not a model.
        InputError: The device, language, precision or number of threads cannot be used.

    Example:
        >>> import pyelmo
        >>> model = pyelmo.load("en")
        >>> model
        Embedder('...en', layers=3, dim=1024, precision='float32', device='cpu')
        >>> model.embed(["A bank account."])[0].shape
        (3, 4, 1024)
    """
    if revision is not None:
        source = hub.with_revision(source, revision)
    embedder = Embedder(
        formats.read(source, options=options, vocab=vocab, align=align), device=device, language=language,
        precision=precision, threads=threads,
    )  # fmt: skip
    embedder.word_table()  # packs the weights now, not at the first sentence
    return embedder


class Embedder(LanguageModel):
    """A pretrained biLM that turns sentences into vectors.

    A sentence has the same vectors alone and in any batch. Threads may share an embedder. Use `pyelmo.load` to make one
    from a file.

    Args:
        pretrained: A model as `pyelmo.formats` reads it.
        device: Where to compute.
        language: The rules that split strings into words (default: those of the model).
        precision: "float32", "int8" (CPU) or "bfloat16" (GPU).
        threads: CPU threads (default: as many as torch uses if it is imported, else as OMP_NUM_THREADS or the
            number of cores allows).

    Raises:
        InputError: The device, language, precision or number of threads cannot be used.

    Example:
        >>> import pyelmo
        >>> model = pyelmo.load("en", precision="int8")
        >>> (model.config.layers, model.config.dim, model.language, model.precision)
        (3, 1024, 'en', 'int8')
    """

    def __init__(
        self,
        pretrained: Pretrained,
        *,
        device: str | torch.device = "cpu",
        language: str | None = None,
        precision: Precision = "float32",
        threads: int | None = None,
    ) -> None:
        if language is None:
            language = pretrained.language or "general"
        check_language(language)
        if threads is not None and threads < 1:
            raise InputError(f"threads is {threads}; it must be at least 1")
        self.pretrained = pretrained
        self.language = language
        self.precision = precision
        self.threads = threads or default_threads()
        self.device = usable_device(device)
        check_precision(precision, self.device)
        self._table: WordTable | None = None
        self._softmax_of_table: WordSoftmax | None = None
        self._table_versions: object = None  # of the parameters that the table was built from
        self._lock = fork_safe_lock()
        self._scripts = ScriptCheck(Path(pretrained.source).name, pretrained.lexicon.vocab)

    def __repr__(self) -> str:
        return (
            f"Embedder({self.pretrained.source!r}, layers={self.config.layers}, dim={self.config.dim}, "
            f"precision={self.precision!r}, device={str(self.device)!r})"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy, or another process, needs to pack the weights for itself."""
        settings = {name: getattr(self, name) for name in ("language", "precision", "threads", "device")}
        return {"pretrained": self.pretrained, **settings}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def bilm(self) -> BiLM:
        """The model as torch modules. The first access builds them from the weights; later ones return the same."""
        return self._build_modules().bilm

    def _build_modules(self) -> Pretrained:
        """Return the model after building its modules, if it has only weights so far. The engine stays valid."""
        only_weights = isinstance(self.pretrained.model, Weights)
        bilm = self.pretrained.bilm.to(self.device)
        if only_weights:
            self._table_versions = parameter_versions(bilm)
        return self.pretrained

    @property
    def lexicon(self) -> Lexicon:
        """How the model reads words: its alphabet and its vocabulary."""
        return self.pretrained.lexicon

    @property
    def config(self) -> ModelConfig:
        """The sizes of the model."""
        return self.pretrained.config

    def word_table(self) -> WordTable:
        """Return the cache of word vectors, after building the engine if that is needed.

        The engine is built at the first call, and again after the modules of the model were trained. `load` and the
        methods that embed call this themselves.

        Returns:
            The table: `add(words)` encodes words ahead of time, and `clear()` forgets all words.

        Example:
            >>> import pyelmo
            >>> table = pyelmo.load("en").word_table()
            >>> table.add(["river", "bank"])
            >>> len(table)
            2
        """
        with self._lock:  # threads that come at the same time build one engine
            if not isinstance(self.pretrained.model, Weights):
                versions = parameter_versions(self.pretrained.model)
                if versions != self._table_versions:
                    self._table, self._table_versions = None, versions
            if self._table is None:
                self._softmax_of_table = None
                engine = build_engine(self.pretrained, self.device, self.precision, self.threads)
                if not isinstance(self.pretrained.model, Weights):  # building may have made the modules, or moved them
                    self._table_versions = parameter_versions(self.pretrained.model)
                self._table = WordTable(engine, self.lexicon, language=self.language)
            return self._table

    def _softmax(self) -> WordSoftmax:
        with self._lock:
            if self._softmax_of_table is None:
                self._softmax_of_table = build_softmax(self.pretrained, self.device, self.threads)
            return self._softmax_of_table

    def to(self, device: str | torch.device) -> Embedder:
        """Move the model to a device.

        Args:
            device: Where to compute: "cpu", "cuda", "cuda:1", ...

        Returns:
            This embedder.

        Raises:
            InputError: There is no such device, or the precision cannot be computed on it.

        Example:
            >>> import pyelmo
            >>> str(pyelmo.load("en").to("cpu").device)
            'cpu'
        """
        target = usable_device(device)
        if target != self.device:
            check_precision(self.precision, target)
            with self._lock:
                self.device, self._table = target, None
        return self

    def tokenise(self, sentence: Sentence, number: int = 0) -> list[str]:
        """Split a string into words, or check a list of words, in the Unicode form that the model reads.

        Args:
            sentence: A string, or a list of words.
            number: The number of the sentence, for the error message.

        Returns:
            The words, normalised: in NFC and without invisible characters. A list keeps its number of words.

        Raises:
            InputError: The sentence is neither a string nor a list of strings.

        Example:
            >>> import pyelmo
            >>> pyelmo.load("en").tokenise("They don't lend.")
            ['They', 'do', "n't", 'lend', '.']
        """
        words = self._read_words(sentence, number)
        if isinstance(sentence, str):
            return list(words)
        check_words(words, number)
        return normalise_words(words, self.language)

    def _read_words(self, sentence: Sentence, number: int) -> Sequence[str]:
        """Return the words of a sentence; those of a list as they were written, and not yet checked."""
        if isinstance(sentence, str):
            words: Sequence[str] = split_words(sentence, self.language)
        elif isinstance(sentence, (list, tuple)):
            words = sentence
        elif isinstance(sentence, Iterable) and not isinstance(sentence, (bytes, dict)):
            words = list(sentence)
        else:
            raise InputError(f"sentence {number}: expected a string or a list of words, got {type(sentence).__name__}")
        try:
            self._scripts.check(words)
        except TypeError:
            check_words(words, number)
            raise
        return words

    def embed(
        self,
        sentences: Iterable[Sentence],
        *,
        layers: LayerChoice = "all",
        pooling: str | None = None,
        batch_size: int | None = None,
        device: str | torch.device | None = None,
        progress: bool = False,
        keep_boundaries: bool = False,
        output: Literal["numpy", "torch"] = "numpy",
        dtype: Literal["float32", "float16"] = "float32",
    ) -> list[Any]:
        """Return the vectors of each sentence.

        Args:
            sentences: Strings, which are split into words, or lists of words.
            layers: "all", "top", "average", the number of a layer (0 is the token layer), the weights of a mix (one per
                layer, or one for each of the 2L - 1 representations of both directions), or a `ScalarMix`.
            pooling: "mean", "max", "first" or "last" over the tokens; the result for a sentence without tokens is NaN.
                "words" gives one vector per word between white space, such as a Korean eojeol, or per word of a list:
                the mean of the tokens into which the model's language splits it. "sentence" gives the model's own
                sentence vector from its token layer, as `encode`; zeros for a sentence without tokens.
            batch_size: The largest number of sentences in a batch. Batches are also limited by their tokens.
            device: Move the model to this device first.
            progress: Show a progress bar on stderr.
            keep_boundaries: Keep the vectors of the boundary tokens `<S>` and `</S>`.
            output: "numpy" or "torch".
            dtype: "float32" or "float16", the type of the result.

        Returns:
            One array per sentence, in input order: (L, T, D) for all layers, (T, D) for one layer or a mix; without T
            if pooled, and with words instead of tokens for "words".

        Raises:
            InputError: A sentence or an argument cannot be used.

        Example:
            >>> import pyelmo
            >>> model = pyelmo.load("en")
            >>> [array.shape for array in model.embed(["A bank account.", ["The", "river"]])]
            [(3, 4, 1024), (3, 2, 1024)]
            >>> model.embed(["A bank account."], layers="top", pooling="mean")[0].shape
            (1024,)
            >>> model.embed(["A bank account."], layers="top", pooling="words")[0].shape
            (3, 1024)
        """
        if isinstance(sentences, str):
            raise InputError("sentences is a single string; pass a list: embed([sentence])")
        sentences = list(sentences)
        vectors = self.stream(
            sentences, layers=layers, pooling=pooling, batch_size=batch_size, device=device,
            keep_boundaries=keep_boundaries, output=output, dtype=dtype,
        )  # fmt: skip
        if progress:
            from tqdm import tqdm

            vectors = tqdm(vectors, total=len(sentences), unit=" sentences")
        return list(vectors)

    def stream(
        self,
        sentences: Iterable[Sentence],
        *,
        layers: LayerChoice = "all",
        pooling: str | None = None,
        batch_size: int | None = None,
        device: str | torch.device | None = None,
        keep_boundaries: bool = False,
        output: Literal["numpy", "torch"] = "numpy",
        dtype: Literal["float32", "float16"] = "float32",
    ) -> Iterator[Any]:
        """Yield the vectors of each sentence, for any amount of text in constant memory.

        Args:
            sentences: Strings or lists of words, read as they are needed.
            layers: As in `embed`.
            pooling: As in `embed`.
            batch_size: As in `embed`.
            device: As in `embed`.
            keep_boundaries: As in `embed`.
            output: As in `embed`.
            dtype: As in `embed`.

        Returns:
            An iterator over the arrays that `embed` returns.

        Raises:
            InputError: An argument cannot be used; or, during the iteration, a sentence cannot.

        Example:
            >>> import pyelmo
            >>> sentences = (f"Sentence {number} ." for number in range(3))
            >>> for array in pyelmo.load("en").stream(sentences, layers="top"):
            ...     print(array.shape)
            (3, 1024)
            (3, 1024)
            (3, 1024)
        """
        if batch_size is not None and batch_size < 1:
            raise InputError(f"batch_size is {batch_size}; it must be at least 1")
        check_choice("output", output, ("numpy", "torch"))
        check_choice("dtype", dtype, ("float32", "float16"))
        check_pooling(pooling, keep_boundaries=keep_boundaries)
        form = model_form(self.pretrained, layers) if pooling == SENTENCE else None
        align = self.pretrained.alignment
        if form is not None and align is not None:
            raise InputError("pooling 'sentence' cannot be aligned; choose 'mean', or load the model without align")
        pick = layer_picker(layers, self.config)
        convert = {"convert": torch_engine("output='torch'").to_tensor} if output == "torch" else {}
        if device is not None:
            self.to(device)
        options = VectorOptions(
            pick=pick, pooling=pooling, keep_boundaries=keep_boundaries, dtype=dtype, align=align, **convert
        )
        count = self.config.layers if isinstance(layers, str) and layers == "all" else 1
        token_bytes = self.config.dim * count * np.dtype(dtype).itemsize
        run = functools.partial(
            stream_vectors, self.word_table(), batch_size=batch_size, window=WINDOW_BYTES // token_bytes
        )
        if pooling == WORDS:
            split = (self._split_within(sentence, number) for number, sentence in enumerate(sentences))
            plain = VectorOptions(
                pick=pick, pooling=None, keep_boundaries=keep_boundaries, dtype="float32", align=align
            )
            return stream_words(split, functools.partial(run, options=plain), options)
        if form is not None:
            words = (self.tokenise(sentence, number) for number, sentence in enumerate(sentences))
            return stream_sentences(form, self.word_table(), words, self.config.directions, options)
        return run((self._read_words(sentence, number) for number, sentence in enumerate(sentences)), options)

    def _split_within(self, sentence: Sentence, number: int) -> tuple[list[str], list[tuple[int, int]]]:
        """Return the tokens of a sentence, and which of them belong to each word between white space."""
        words = written_words(sentence, self.language) if isinstance(sentence, str) else self.tokenise(sentence, number)
        tokens, groups = split_within(words, self.language)
        self._scripts.check(tokens)
        return tokens, groups

    def encode(
        self,
        sentences: Sentence | Iterable[Sentence],
        batch_size: int | None = None,
        show_progress_bar: bool = False,
        *,
        layers: LayerChoice | None = None,
        pooling: str | None = None,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        device: str | torch.device | None = None,
    ) -> Any:
        """Return one vector per sentence as a matrix, with the argument names of sentence-transformers.

        Args:
            sentences: One string, or several sentences as in `embed`.
            batch_size: The largest number of sentences in a batch.
            show_progress_bar: Show a progress bar on stderr.
            layers: As in `embed`; the default is "average" if `pooling` is given.
            pooling: As in `embed`; the default is "mean" if `layers` is given. Without either, the model's own
                sentence vector, pooling "sentence": the mean of the token layer, in which frequent words and common
                directions count less, or "average" and "mean" if the model has none (`elmo sentences` adds it).
            convert_to_tensor: Return a torch tensor instead of a numpy array.
            normalize_embeddings: Scale each vector to length 1, so that dot products are cosines.
            device: Move the model to this device first.

        Returns:
            An array (number of sentences, D), or (D,) for one string. The vector of a sentence without words is zero,
            which is similar to nothing, and NaN for another pooling than "sentence".

        Raises:
            InputError: A sentence or an argument cannot be used.

        Example:
            >>> import pyelmo
            >>> model = pyelmo.load("en")
            >>> model.encode(["A bank account.", "The river."]).shape
            (2, 1024)
            >>> vector = model.encode("A bank account.", normalize_embeddings=True)
            >>> round(float(vector @ vector), 3)
            1.0
        """
        if pooling == WORDS or (isinstance(layers, str) and layers == "all"):
            raise InputError("encode: needs a pooling and one layer or a mix, so that a sentence has one vector")
        if layers is None:
            if pooling is None and self.pretrained.sentence is not None:
                pooling = SENTENCE
            layers = "all" if pooling == SENTENCE else "average"
        single = isinstance(sentences, str)
        vectors = self.embed(
            [sentences] if isinstance(sentences, str) else sentences, layers=layers, pooling=pooling or "mean",
            batch_size=batch_size, device=device, progress=show_progress_bar,
        )  # fmt: skip
        matrix = np.stack(vectors) if vectors else np.zeros((0, self.config.dim), np.float32)
        if normalize_embeddings:
            matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        result = matrix[0] if single else matrix
        return torch_engine("convert_to_tensor").to_tensor(result) if convert_to_tensor else result

    def similarity(
        self, first: Sentence, second: Sentence, *, layers: LayerChoice | None = None, by: Measure = "vectors"
    ) -> float:
        """Return the cosine of two words in their sentences, or of two sentences.

        Args:
            first: A sentence. With asterisks around one word, as in "the *bank* of a river", that word is compared;
                otherwise the vectors of both sentences.
            second: The other sentence, with a marked word if and only if `first` has one.
            layers: As in `embed`, except "all". By default the top layer, but for sentences the model's own sentence
                vectors, if it has them (`encode`); with a choice, sentences are the means of their words.
            by: "vectors", or "substitutes" to compare marked words by what could stand in their place
                (`substitute_vectors`), which tells senses apart better.

        Returns:
            The cosine, between -1 and 1.

        Raises:
            InputError: Only one sentence has a marked word, one has several, or `layers` is "all"; or substitutes are
                asked for without marked words, with a choice of layers, or of a model that cannot predict words.

        Example:
            >>> import pyelmo
            >>> model = pyelmo.load("en")
            >>> near = model.similarity("the *bank* of the river", "the *bank* of the lake")
            >>> far = model.similarity("the *bank* of the river", "a *bank* account")
            >>> near > far
            True
            >>> near = model.similarity("a *bank* loan", "they robbed the *bank*", by="substitutes")
            >>> far = model.similarity("a *bank* loan", "the grassy *bank*", by="substitutes")
            >>> near > far
            True
            >>> round(model.similarity("A bank account.", "A bank account."), 3)
            1.0
        """
        if by not in get_args(Measure):
            raise InputError(f"by={by!r} is unknown. Use one of {', '.join(get_args(Measure))}")
        if by == "substitutes" and layers is not None:
            raise InputError("substitutes are of no layer: leave out layers, or compare vectors")
        if isinstance(layers, str) and layers == "all":
            raise InputError("layers 'all' cannot be compared; choose 'top', 'average', a layer or a mix")
        words, marked = zip(*map(self._read_marked, (first, second)), strict=True)
        counts = [len(positions) for positions in marked]
        if not all(words):
            return 0.0  # a sentence without words is similar to nothing
        if counts == [0, 0] and by == "vectors":
            default = None if self.pretrained.sentence else "top"
            vectors = self.encode(words, layers=default if layers is None else layers)  # (D,) each
        elif counts == [1, 1] and by == "substitutes":
            vectors = list(self.substitute_vectors((own, at[0]) for own, at in zip(words, marked, strict=True)))
        elif counts == [1, 1]:
            arrays = self.embed(words, layers="top" if layers is None else layers)  # (T, D) each
            vectors = [array[positions[0]] for array, positions in zip(arrays, marked, strict=True)]
        else:
            raise InputError(
                f"{counts[0]} words are marked in the first sentence and {counts[1]} in the second. "
                "Mark one word in each, as in 'the *bank* of a river', or none"
            )
        lengths = [float(np.linalg.norm(vector)) for vector in vectors]
        return float(vectors[0] @ vectors[1]) / max(lengths[0] * lengths[1], 1e-12)

    def _read_marked(self, sentence: Sentence) -> tuple[list[str], list[int]]:
        if not isinstance(sentence, str):
            return self.tokenise(sentence), []
        marked = read_marked(sentence, self.language)
        return marked.words, marked.positions

    def batch(self, sentences: Sequence[Sentence]) -> Batch:
        """Return sentences as the tensors that `BiLM` and `Elmo` take.

        Args:
            sentences: Strings, which are split into words as in `embed`, or lists of words.

        Returns:
            The distinct words as ids, the index of each token (B, T) and the mask (B, T), with boundary tokens, on the
            device of the model.

        Raises:
            InputError: `sentences` is one string instead of a list, or a word is not a string.

        Example:
            >>> import pyelmo
            >>> batch = pyelmo.load("en").batch(["A bank", ["The", "river", "bank"]])
            >>> tuple(batch.mask.shape)
            (2, 5)
        """
        if isinstance(sentences, str):
            raise InputError("sentences is one string; give a list of them: batch([sentence])")
        tokenised = [self.tokenise(sentence, number) for number, sentence in enumerate(sentences)]
        batch: Batch = torch_engine("batch").tensor_batch(self.lexicon, tokenised, self.device)
        return batch

    def elmo(self, **options: Any) -> Elmo:
        """Return the module that a task network holds, around this model.

        Args:
            options: The keyword arguments of `pyelmo.Elmo`.

        Returns:
            A module from sentences, or a batch of them, to mixed vectors (B, T, D).

        Raises:
            InputError: The model was loaded with an alignment, which a module does not apply.

        Example:
            >>> import pyelmo
            >>> elmo = pyelmo.load("en").elmo(dropout=0.0)
            >>> output = elmo(["A bank", "The river bank"])
            >>> tuple(output.representations[0].shape)
            (2, 3, 1024)
        """
        from pyelmo.model.elmo import Elmo

        if self.pretrained.alignment is not None:
            raise InputError("a module cannot be aligned; load the model without align, and multiply its vectors")
        # An embedder without an engine reads the sentences, so that the module does not keep the packed weights alive.
        reader = Embedder(self._build_modules(), device=self.device, language=self.language, precision=self.precision)
        return Elmo(reader.bilm, batch=reader.batch, **options)

    def save(
        self,
        path: str | Path,
        *,
        format: formats.WritableFormat = "pyelmo",
        precision: Literal["float32", "int8", "int4"] | None = None,
        force: bool = False,
    ) -> None:
        """Write the model as a folder, or as AllenNLP's files, that `load` reads.

        Args:
            path: The folder to write; a name that ends in .hdf5 gets AllenNLP's weights, with the options beside it.
            format: "pyelmo" or "allennlp".
            precision: "float32", "int8" or "int4" (default: "int8" if this embedder computes in it and the format
                allows it).
            force: Replace what exists.

        Raises:
            InputError: The format and the precision do not fit together.
            OutputError: The path exists, or cannot be written.

        Example:
            >>> import pyelmo, tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     pyelmo.load("en", precision="int8").save(f"{folder}/model")
            ...     pyelmo.load(f"{folder}/model").config.dim
            1024
        """
        if precision is None:
            native = format == "pyelmo" and Path(path).suffix not in formats.HDF5
            precision = "int8" if native and self.precision == "int8" else "float32"
        formats.write(self.pretrained, path, format=format, precision=precision, force=force)

    def push_to_hub(
        self,
        hub_id: str,
        *,
        private: bool = False,
        revision: str | None = None,
        precision: Literal["float32", "int8", "int4"] | None = None,
    ) -> str:
        """Upload the model with a model card to the Hugging Face Hub, from where `load` reads it.

        Log in first with `hf auth login`. The card is the README.md beside the model, or is made from its figures.

        Args:
            hub_id: The repository, "user/name". It is created if it does not exist.
            private: Whether a new repository is private.
            revision: The branch (default: main). It is created if it does not exist.
            precision: As in `save`.

        Returns:
            The address of the commit.

        Raises:
            MissingExtraError: The extra `hub` is not installed.
            OutputError: The upload failed.

        Example:
            >>> import pyelmo
            >>> pyelmo.load("en").push_to_hub("user/my-elmo")  # doctest: +SKIP
        """
        return hub.push(
            self.pretrained, hub_id, lambda folder: self.save(folder, precision=precision),
            private=private, revision=revision,
        )  # fmt: skip
