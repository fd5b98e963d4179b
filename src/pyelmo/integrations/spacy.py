"""ELMo in spaCy: the pipeline component "elmo", and the architecture "pyelmo.ElmoTok2Vec.v1" for trained components.

    nlp.add_pipe("elmo")         doc.tensor, token.vector, doc._.elmo_layers, similarity of words in their context
    pyelmo.ElmoTok2Vec.v1        documents -> vectors, frozen, with a learnt mix of the layers: spaCy's NER trains on it

spaCy finds both by the entry points of pyelmo. spaCy's tokens are the words, so vectors and tokens correspond one to
one. A pipeline stores the name of its model, not the weights.

L layers (the token layer included), T tokens of a document, D vector, W size of the output.
"""

from __future__ import annotations

import hashlib
import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.config import weight_shapes
from pyelmo.embed.embedder import Embedder, Precision
from pyelmo.embed.layers import WORDS, layer_picker, pool_words
from pyelmo.errors import FormatError, InputError, missing_extra
from pyelmo.formats import resolve
from pyelmo.formats.pretrained import Pretrained, floats

try:
    from spacy.language import Language
    from spacy.pipeline import Pipe
    from spacy.tokens import Doc, Span, Token
    from spacy.util import minibatch
    from thinc.api import Dropout, Maxout, Model, chain, with_array
except ImportError as error:
    raise missing_extra("spacy", "pyelmo.integrations.spacy") from error

LayerSetting: TypeAlias = str | int | list[float]  # what a config file can say of the layers
MIX = "mix"  # the layers of a trained component: a mix that is learnt with it
SMALL = 1 << 17  # numbers in a weight that is part of the checksum
LAYERS = "elmo_layers"  # the extension of documents, spans and tokens


class DocEncoder:
    """A model that embeds spaCy's documents. A copy in another process loads it again by its name."""

    def __init__(self, model: str, precision: Precision, device: str, threads: int | None) -> None:
        self.settings = (model, precision, device, threads)
        pretrained = resolve.read(model)
        self.checksum = _checksum(pretrained)  # of the file, whatever the precision of the engine
        self.embedder = Embedder(pretrained, precision=precision, device=device, threads=threads)
        self.embedder.word_table()  # packs the weights now, not at the first document
        # spaCy's tokens are not morphemes: a token of a morpheme model is the mean of its morphemes.
        self.pooling = WORDS if self.embedder.language == "ko-morph" else None
        self._cache: dict[Any, Float32Array] = {}  # of `embed_once`
        self._cached_bytes = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return shared_encoder, self.settings

    @property
    def shape(self) -> tuple[int, int]:
        """The number of layers and the size of a vector."""
        return self.embedder.config.layers, self.embedder.config.dim

    def embed(self, docs: Sequence[Doc]) -> list[Float32Array]:
        """Return all layers (L, T, D) of each document; those of white space are zero.

        If a component has set sentence boundaries, each sentence is embedded by itself, otherwise the whole document.
        """
        layers, dim = self.shape
        arrays = [np.zeros((layers, len(doc), dim), np.float32) for doc in docs]
        places = [(array, place) for doc, array in zip(docs, arrays, strict=True) for place in _sentences(doc)]
        texts = [[token.text for token in place] for _, place in places]
        for (array, place), vectors in zip(places, self._stream(texts), strict=True):
            array[:, [token.i for token in place]] = vectors
        return arrays

    def embed_once(self, docs: Sequence[Doc], *, store: bool, room: int) -> list[Float32Array]:
        """Return what `embed` returns, from a cache if possible. `store` keeps new documents, in `room` bytes at most.

        A full cache keeps what it has: in training, all documents come in every epoch, and none is more recent.
        """
        keys = [tuple((token.text, token.is_sent_start) for token in doc) for doc in docs]
        new = {key: doc for key, doc in zip(keys, docs, strict=True) if key not in self._cache}
        computed = dict(zip(new, self.embed(list(new.values())), strict=True))
        arrays = [self._cache[key] if key in self._cache else computed[key] for key in keys]
        for key, array in computed.items() if store else ():
            if self._cached_bytes + array.nbytes <= room:
                self._cached_bytes += array.nbytes
                self._cache[key] = array
        return arrays

    def _stream(self, sentences: list[list[str]]) -> Iterator[Float32Array]:
        """Yield the layers of the tokens of each sentence. A token with a space inside is the mean of its words."""
        if self.pooling is not None:
            vectors = self.embedder.stream(sentences, pooling=self.pooling)
            yield from map(np.nan_to_num, vectors)  # a sentence without a single morpheme
            return
        split = [[token.split() for token in tokens] for tokens in sentences]
        flat = ([word for words in tokens for word in words] for tokens in split)
        for tokens, vectors in zip(split, self.embedder.stream(flat), strict=True):
            ends = np.cumsum([len(words) for words in tokens]).tolist()
            whole = len(ends) == ends[-1]
            yield vectors if whole else pool_words(vectors, list(zip([0, *ends[:-1]], ends, strict=True)))


_encoders: weakref.WeakValueDictionary[tuple[Any, ...], DocEncoder] = weakref.WeakValueDictionary()


def shared_encoder(model: str, precision: Precision, device: str, threads: int | None) -> DocEncoder:
    """Return an encoder; components with the same settings share one, so that its weights are in memory once."""
    settings = (model, precision, device, threads)
    encoder = _encoders.get(settings)
    if encoder is None:
        _encoders[settings] = encoder = DocEncoder(*settings)
    return encoder


def _checksum(pretrained: Pretrained) -> str:
    """Return a SHA-256 of the small weights, which tell one model from another and are quick to read."""
    digest = hashlib.sha256()
    for name, shape in weight_shapes(pretrained.config).items():
        if math.prod(shape) <= SMALL and not name.startswith("softmax"):
            digest.update(name.encode() + floats(pretrained.weights[name]).tobytes())
    return digest.hexdigest()


def _sentences(doc: Doc) -> Iterator[list[Token]]:
    """Yield the tokens of each sentence without white space, if there are any."""
    for sentence in doc.sents if doc.has_annotation("SENT_START") else [doc]:
        if tokens := [token for token in sentence if not token.is_space]:
            yield tokens


# --- the component --------------------------------------------------------------------------------------------------


@Language.factory(
    "elmo",
    assigns=["doc.tensor", f"doc._.{LAYERS}"],
    default_config={
        "model": "en", "layers": "top", "keep_layers": True, "precision": "float32", "device": "cpu", "threads": None,
    },
)  # fmt: skip
def make_elmo(
    nlp: Language,
    name: str,
    model: str,
    layers: LayerSetting,
    keep_layers: bool,
    precision: Precision,
    device: str,
    threads: int | None,
) -> ElmoPipe:
    """Make the component "elmo". The settings are those of `pyelmo.load` and `Embedder.embed`.

    Args:
        nlp: The pipeline.
        name: The name of the component.
        model: A bundled model, a folder, a file or a Hub id.
        layers: What `doc.tensor` holds: "top", "average", the number of a layer or the weights of a mix.
        keep_layers: Whether `doc._.elmo_layers` keeps all layers (L, T, D), which take L times the memory.
        precision: "float32", "int8" or "bfloat16".
        device: Where to compute.
        threads: CPU threads.

    Returns:
        The component.
    """
    return ElmoPipe(name, shared_encoder(model, precision, device, threads), layers, keep_layers)


class ElmoPipe(Pipe):
    """Writes vectors into documents, and makes the similarity of tokens, spans and documents follow the context."""

    def __init__(self, name: str, encoder: DocEncoder, layers: LayerSetting, keep_layers: bool) -> None:
        if layers == "all":
            raise InputError("layers 'all': doc.tensor has one vector per token. doc._.elmo_layers has all layers")
        self.name, self.encoder, self.layers, self.keep_layers = name, encoder, layers, keep_layers
        self._pick = layer_picker(layers, encoder.embedder.config)

    def __reduce__(self) -> tuple[Any, ...]:
        return ElmoPipe, (self.name, self.encoder, self.layers, self.keep_layers)

    def __call__(self, doc: Doc) -> Doc:
        """Set the vectors of one document."""
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Set the vectors of a stream of documents; `batch_size` of them are embedded together."""
        for docs in minibatch(stream, size=batch_size):  # type: ignore[no-untyped-call]
            try:
                self._annotate(docs)
            except Exception as error:
                self.get_error_handler()(self.name, self, docs, error)
            else:
                yield from docs

    def _annotate(self, docs: Sequence[Doc]) -> None:
        for doc, layers in zip(docs, self.encoder.embed(docs), strict=True):
            doc.tensor = np.ascontiguousarray(self._pick(layers))
            if self.keep_layers:
                doc._.set(LAYERS, layers)
            use_context(doc)


def use_context(doc: Doc) -> Doc:
    """Make the vectors and similarities of a document come from `doc.tensor`. The component "elmo" does so itself.

    spaCy does not store this with a document, so call it on documents from `nlp.pipe(n_process=2)` or
    `Doc.from_bytes`. Otherwise spaCy finds equal words equal in every context. A `DocBin` stores no `doc.tensor`; with
    `store_user_data=True` it has `doc._.elmo_layers`, from which it can be set.

    Args:
        doc: A document with vectors in `doc.tensor`.

    Returns:
        The document.

    Raises:
        InputError: The document has no vectors.
    """
    if len(doc.tensor) < len(doc):
        raise InputError(
            f"doc.tensor has {len(doc.tensor)} vectors for {len(doc)} tokens. A DocBin does not store it: save one "
            "with store_user_data=True, and set doc.tensor = doc._.elmo_layers[-1]"
        )
    doc.user_token_hooks |= {"vector": _token_vector, "has_vector": _is_word, "similarity": _cosine}
    means: dict[str, Callable[..., Any]] = {"vector": _mean_vector, "has_vector": _has_words, "similarity": _cosine}
    doc.user_span_hooks |= means
    doc.user_hooks |= means
    return doc


def _token_vector(token: Token) -> Any:
    return token.doc.tensor[token.i]


def _is_word(token: Token) -> bool:
    return not token.is_space


def _has_words(tokens: Doc | Span) -> bool:
    return any(map(_is_word, tokens))


def _mean_vector(tokens: Doc | Span) -> Float32Array:
    """Return the mean of the vectors of the words; zeros if there are none."""
    doc = tokens if isinstance(tokens, Doc) else tokens.doc
    tensor: Any = doc.tensor
    words = [token.i for token in filter(_is_word, tokens)]
    mean: Float32Array = tensor[words].mean(0, dtype=np.float32) if words else np.zeros(tensor.shape[1:], np.float32)
    return mean


def _cosine(one: Any, other: Any) -> float:
    """Return the cosine of the vectors of tokens, spans or documents; 0 if one has no words."""
    first, second = one.vector, other.vector
    lengths = float(np.linalg.norm(first)) * float(np.linalg.norm(second))
    return float(first @ second) / lengths if lengths else 0.0


def _own_layers(part: Span | Token) -> Float32Array | None:
    """Return the layers (L, T, D) of a span, or (L, D) of a token."""
    layers: Float32Array | None = part.doc._.get(LAYERS)
    if layers is None:
        return None
    if layers.shape[1] != len(part.doc):
        raise InputError(
            f"doc._.elmo_layers has {layers.shape[1]} tokens, but the document has {len(part.doc)}: another component "
            "merged or split tokens. Add it before 'elmo'"
        )
    return layers[:, part.i] if isinstance(part, Token) else layers[:, part.start : part.end]


Doc.set_extension(LAYERS, default=None, force=True)
for _part in (Span, Token):
    _part.set_extension(LAYERS, getter=_own_layers, force=True)


# --- the architecture -----------------------------------------------------------------------------------------------


def elmo_tok2vec(
    model: str = "en",
    layers: LayerSetting = MIX,
    width: int | None = None,
    precision: Precision = "float32",
    device: str = "cpu",
    threads: int | None = None,
    cache_mb: int = 512,
) -> Model[list[Doc], list[Any]]:
    """Build the architecture "pyelmo.ElmoTok2Vec.v1": documents to vectors. The biLM is frozen.

    Args:
        model: A bundled model, a folder, a file or a Hub id.
        layers: "mix" learns one weight per layer and a scale, as in the paper; or a fixed choice, as in `embed`.
        width: Size of the output: a dense layer is learnt after the mix (default: the vectors as they are).
        precision: "float32", "int8" or "bfloat16".
        device: Where to compute.
        threads: CPU threads.
        cache_mb: Megabytes of layers of training documents to keep, so that an epoch after the first does not embed
            them again.

    Returns:
        A layer of thinc from documents to arrays (T, W).
    """
    encoder = shared_encoder(model, precision, device, threads)
    count, dim = encoder.shape
    if layers == "all":
        raise InputError(f"layers 'all': a trained component needs one vector per token. Use {MIX!r}")
    frozen = _FrozenLayers(encoder, None if layers == MIX else layers, cache_mb)
    elmo: Model[list[Doc], list[Any]] = Model(
        "elmo", frozen, init=_init_mix, dims={"nO": dim, "nL": count},
        params={"logits": None, "scale": None} if layers == MIX else {}, attrs={"checksum": encoder.checksum},
    )  # fmt: skip
    if width is None:
        return chain(elmo, with_array(Dropout(0.0)))
    dense: Model[Any, Any] = chain(Dropout(0.0), Maxout(width, dim, nP=3, normalize=True, dropout=0.0))
    return chain(elmo, with_array(dense))


def _init_mix(model: Model[Any, Any], X: Any = None, Y: Any = None) -> None:  # noqa: N803 (thinc calls it by these names)
    """Begin with equal weights and a scale of 1."""
    if model.has_param("scale") is not False:
        model.set_param("logits", model.ops.alloc1f(model.get_dim("nL")))
        model.set_param("scale", model.ops.alloc1f(1) + 1.0)


class _FrozenLayers:
    """The forward pass of the layer "elmo": frozen layers, mixed by the parameters of the layer.

    y = scale * sum_l s_l h_l,   s = softmax(logits)
    """

    def __init__(self, encoder: DocEncoder, layers: LayerSetting | None, cache_mb: int) -> None:
        self.encoder, self.layers, self.cache_mb = encoder, layers, cache_mb

    def __reduce__(self) -> tuple[Any, ...]:
        return _FrozenLayers, (self.encoder, self.layers, self.cache_mb)

    def __call__(
        self, model: Model[Any, Any], docs: list[Doc], is_train: bool
    ) -> tuple[list[Any], Callable[[list[Any]], list[Doc]]]:
        if model.attrs["checksum"] != self.encoder.checksum:
            raise FormatError(
                f"{self.encoder.settings[0]}: not the model that this pipeline was trained with (checksum mismatch). "
                "Name that one as `model` of pyelmo.ElmoTok2Vec.v1 in its config.cfg"
            )
        arrays = self.encoder.embed_once(docs, store=is_train, room=self.cache_mb * 2**20)  # (L, T, D) each
        arrays = [model.ops.xp.asarray(array) for array in arrays]
        if self.layers is not None:
            pick = layer_picker(self.layers, self.encoder.embedder.config)
            return [pick(array) for array in arrays], lambda gradients: []
        return _mix(model, arrays)


def _mix(model: Model[Any, Any], arrays: list[Any]) -> tuple[list[Any], Callable[[list[Any]], list[Doc]]]:
    xp = model.ops.xp
    scale = model.get_param("scale")
    weights = model.ops.softmax(model.get_param("logits"))  # (L,)
    mixed = [xp.tensordot(weights, array, 1) for array in arrays]  # (T, D) each

    def backprop(gradients: list[Any]) -> list[Doc]:
        pairs = list(zip(gradients, arrays, strict=True))
        inner = sum(xp.tensordot(array, gradient, 2) for gradient, array in pairs)  # (L,)
        model.inc_grad("scale", (weights * inner).sum(keepdims=True))
        model.inc_grad("logits", scale * weights * (inner - (weights * inner).sum()))
        return []

    return [scale * values for values in mixed], backprop
