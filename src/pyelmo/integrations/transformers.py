"""ELMo for Hugging Face transformers. Importing this module registers it for the Auto classes.

    text --ElmoTokenizer--> input_ids (B, T, C), attention_mask (B, T) --ElmoModel--> last_hidden_state (B, T, D)

A token is a word, so input_ids has one row of C numbers per word: its symbols, its id in the vocabulary, or both, as
the model reads it. The tokenizer adds no boundary tokens. The model adds `<S>` and `</S>` itself and removes their
vectors, so that tokens, vectors and labels correspond one to one, and the vectors are those of `Embedder.embed`.

B sentences, T words of the longest, C numbers of a word, L layers (the token layer included), D vector.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyelmo.config import ModelConfig, from_dict, to_dict, weight_shapes
from pyelmo.embed.embedder import Embedder
from pyelmo.errors import InputError, missing_extra
from pyelmo.formats import resolve
from pyelmo.formats.native import CONFIG, PREFIX
from pyelmo.formats.pretrained import Pretrained, floats
from pyelmo.integrations.transformers_tokenizer import ElmoTokenizer as ElmoTokenizer
from pyelmo.integrations.transformers_tokenizer import locate, word_rows
from pyelmo.parsing import read_json
from pyelmo.text.characters import Bytes, Jamo
from pyelmo.text.lexicon import EncodedWords, Lexicon

try:
    import torch
    from torch import Tensor, nn
    from transformers import (
        AutoConfig,
        AutoModel,
        AutoModelForTokenClassification,
        AutoTokenizer,
        PreTrainedConfig,
        PreTrainedModel,
    )
    from transformers import initialization as init
    from transformers.modeling_outputs import BaseModelOutput, TokenClassifierOutput
    from transformers.utils import can_return_tuple
except ImportError:
    raise missing_extra("transformers", "ELMo for transformers") from None

from pyelmo.model.bilm import Batch, BiLM
from pyelmo.model.elmo import drop_boundaries
from pyelmo.model.scalar_mix import ScalarMix


class ElmoConfig(PreTrainedConfig):  # type: ignore[misc]
    """The config of a model of pyelmo, which is also its config.json, as transformers wants it.

    Args:
        model: The settings of `pyelmo.ModelConfig` as a dictionary. A softmax is left out: these models have vectors
            and task heads, and predict no words.
        language, marks: As in config.json of pyelmo: the rules that split text, and the special tokens' spelling.
        begin_ids, end_ids: The rows (C,) of the boundary tokens; by default those of a model that reads bytes or jamo.
        classifier_dropout: Dropout on the mixed vectors before a task head.
        kwargs: The settings of `transformers.PreTrainedConfig`, such as `num_labels`.

    Raises:
        ConfigError: `model` is invalid.
    """

    model_type = "elmo"

    format: str = "pyelmo"
    version: int = 1
    model: dict[str, Any] | None = None
    language: str | None = None
    marks: dict[str, str] | None = None
    begin_ids: list[int] | None = None
    end_ids: list[int] | None = None
    classifier_dropout: float = 0.5

    def __post_init__(self, **kwargs: Any) -> None:
        self._set_model(from_dict(ModelConfig, self.model or {}))
        chars = self.bilm.chars
        if self.begin_ids is None and self.bilm.words is None and chars is not None and chars.alphabet != "dictionary":
            alphabet = (Bytes if chars.alphabet == "bytes" else Jamo)(chars.max_length)
            self.begin_ids, self.end_ids = _boundary_ids(Lexicon(alphabet))
        super().__post_init__(**kwargs)

    def _set_model(self, model: ModelConfig) -> None:
        self.model = to_dict(replace(model, softmax=None, softmax_shares_words=False, softmax_cutoffs=()))

    def describing(self, pretrained: Pretrained) -> ElmoConfig:
        """Return a copy that has the sizes, the language and the boundary tokens of a model."""
        config = copy.deepcopy(self)
        config._set_model(pretrained.config)
        config.language = pretrained.language
        if pretrained.lexicon.reads_words and (vocab := pretrained.lexicon.vocab) is not None:
            config.marks = {"begin": vocab.begin, "end": vocab.end, "unknown": vocab.unknown}
        config.begin_ids, config.end_ids = _boundary_ids(pretrained.lexicon)
        return config

    @property
    def bilm(self) -> ModelConfig:
        """The sizes of the model as `pyelmo.BiLM` takes them."""
        return from_dict(ModelConfig, self.model or {})

    @property
    def hidden_size(self) -> int:
        """The size D of a vector."""
        return self.bilm.dim

    @property
    def num_hidden_layers(self) -> int:
        """The number of LSTM layers, one less than that of the hidden states."""
        return self.bilm.lstm.layers


def _boundary_ids(lexicon: Lexicon) -> tuple[list[int], list[int]]:
    begin, end = word_rows(lexicon, [lexicon.begin, lexicon.end]).tolist()
    return begin, end


class ElmoPreTrainedModel(PreTrainedModel):  # type: ignore[misc]
    """What the models share: a `pyelmo.BiLM`, and how it is read and called."""

    config_class = ElmoConfig
    base_model_prefix = "bilm"
    main_input_name = "input_ids"

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__(config)
        if config.begin_ids is None:
            raise InputError("begin_ids and end_ids: a model that reads words needs the rows of its boundary tokens")
        self.bilm = BiLM(config.bilm)
        self._embedder: Embedder | None = None

    @classmethod
    def from_pretrained(cls, source: str | Path, *args: Any, config: Any = None, **kwargs: Any) -> Any:
        """Read a model.

        Args:
            source: A source of `pyelmo.load`, or a folder of `save_pretrained`.
            config: An `ElmoConfig` with other settings than the stored ones.
            args, kwargs: As for other models of transformers, such as `num_labels` or `dtype`.

        Returns:
            The model in evaluation mode.

        Raises:
            NotFoundError: There is no such model or file.
            FormatError: A file is damaged, or not a model.
        """
        path = locate(source, kwargs.pop("revision", None))
        settings = path / CONFIG
        if settings.is_file() and read_json(settings).get("architectures"):  # written by save_pretrained
            return super().from_pretrained(path, *args, config=config, **kwargs)
        pretrained = resolve.read(path)
        if config is None:
            config, kwargs = ElmoConfig.from_dict({}, return_unused_kwargs=True, **kwargs)
        config = config.describing(pretrained)
        stored = pretrained.weights
        weights = {PREFIX + name: torch.tensor(floats(stored[name])) for name in weight_shapes(config.bilm)}
        return super().from_pretrained(None, *args, config=config, state_dict=weights, **kwargs)

    def _init_weights(self, module: nn.Module) -> None:
        """Initialise a task head. The modules of the biLM have initialised themselves."""
        if isinstance(module, ScalarMix):
            init.zeros_(module.logits)
            init.ones_(module.gamma)
        elif isinstance(module, nn.Linear) and module is getattr(self, "classifier", None):
            super()._init_weights(module)

    def layers(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return all layers of a batch, without boundary tokens and 0 after the end of a sentence.

        On a CPU in float32, without gradients for the biLM, the engine of `pyelmo.load` computes them, with the same
        bits as `Embedder.embed`. Everything else runs through the modules.

        Args:
            input_ids: The rows of the words (B, T, C).
            attention_mask: 1 for words and 0 for the padding after them (B, T); by default all are words.

        Returns:
            The layers (L, B, T, D).

        Raises:
            InputError: The rows have another size than those of this model, or padding comes before a word.
        """
        size = len(self.config.begin_ids)
        if input_ids.dim() != 3 or input_ids.shape[-1] != size:
            raise InputError(
                f"input_ids: expected (sentences, words, {size}) from the ElmoTokenizer of this model, "
                f"got {tuple(input_ids.shape)}"
            )
        mask = torch.ones_like(input_ids[..., 0]) if attention_mask is None else attention_mask
        batch = self._batch(input_ids, mask.bool())
        weight = next(self.bilm.parameters())
        frozen = not torch.is_grad_enabled() or not any(own.requires_grad for own in self.bilm.parameters())
        plain = weight.device.type == "cpu" and weight.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
        if not frozen:
            self._embedder = None  # a fused optimiser changes weights unseen by the embedder's own check
        with torch.set_grad_enabled(not frozen):
            values = self._run_engine(batch) if frozen and plain else self.bilm(batch).values
            return torch.stack([drop_boundaries(layer, batch.mask) for layer in values])

    def _batch(self, input_ids: Tensor, mask: Tensor) -> Batch:
        """Return the distinct words and where they stand, with boundary tokens."""
        if (mask[:, 1:] & ~mask[:, :-1]).any():
            raise InputError("attention_mask: padding must come after the words (padding_side 'right')")
        begin, end = (input_ids.new_tensor(ids) for ids in (self.config.begin_ids, self.config.end_ids))
        rows = torch.where(mask.unsqueeze(-1), input_ids, begin)  # padding may hold any number
        edge = begin.expand(len(rows), 1, -1)
        rows = torch.cat([edge, rows, edge], 1)  # (B, T + 2, C)
        rows[torch.arange(len(rows), device=rows.device), mask.sum(1) + 1] = end
        distinct, index = rows.flatten(0, 1).unique(dim=0, return_inverse=True)
        index, full = index.int().view(rows.shape[:2]), nn.functional.pad(mask, (2, 0), value=True)
        return Batch(*self._split(distinct), index, full)

    def _run_engine(self, batch: Batch) -> Tensor:  # -> (L, B, T, D)
        if self._embedder is None:
            self._embedder = Embedder(Pretrained(self.bilm, Lexicon(), "transformers", self.config.name_or_path))
        engine = self._embedder.word_table().engine
        chars, words = (None if ids is None else ids.numpy() for ids in (batch.chars, batch.words))
        table = engine.encode(EncodedWords(chars, words))
        lengths, order = batch.mask.sum(1).sort(descending=True, stable=True)  # the engine takes the longest first
        tokens = batch.index[order][batch.mask[order]]  # (N,)
        vectors = engine.submit(table, tokens.numpy(), lengths.numpy(), lambda layers: layers, "float32").result()
        values = torch.zeros(len(vectors), *batch.mask.shape, vectors.shape[-1])
        values[:, batch.mask[order]] = torch.from_numpy(vectors)
        return values[:, order.argsort()]

    def _split(self, rows: Tensor) -> tuple[Tensor | None, Tensor | None]:  # (U, C) -> (U, symbols), (U,)
        """Return the symbols and the ids of words, of which a model may read only one."""
        config, chars, words = self.bilm.config, None, None
        if config.chars is not None:
            chars = _within(rows[:, : config.chars.max_length], config.chars.symbols)
        if config.words is not None:
            words = _within(rows[:, -1], config.words.size)
        return chars, words


def _within(ids: Tensor, size: int) -> Tensor:
    """Return the ids as int32 after checking that the model has them: the engine reads memory by them."""
    if len(ids) and (ids.min() < 0 or ids.max() >= size):
        raise InputError(f"input_ids: a number is not below {size}. Are they from the tokenizer of another model?")
    return ids.int().contiguous()


class ElmoModel(ElmoPreTrainedModel):
    """The vectors of words in all layers of a biLM.

    `last_hidden_state` is the top layer (B, T, D), `hidden_states` all L layers, the token layer first. Both are 0
    after the end of a sentence.

    Args:
        config: The sizes of the model, for random weights; `from_pretrained` reads a trained one.

    Example:
        >>> from pyelmo.integrations.transformers import ElmoModel, ElmoTokenizer
        >>> tokenizer, model = ElmoTokenizer.from_pretrained("en"), ElmoModel.from_pretrained("en")
        >>> inputs = tokenizer(["A bank account.", "The river."], padding=True, return_tensors="pt")
        >>> output = model(**inputs, output_hidden_states=True)
        >>> output.last_hidden_state.shape, len(output.hidden_states)
        (torch.Size([2, 4, 1024]), 3)
    """

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__(config)
        self.post_init()

    @can_return_tuple  # type: ignore[untyped-decorator]
    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, output_hidden_states: bool | None = None
    ) -> BaseModelOutput:
        """Compute the vectors of a batch.

        Args:
            input_ids, attention_mask: What the tokenizer returns; see `layers`.
            output_hidden_states: Return all layers, too.

        Returns:
            `last_hidden_state` (B, T, D) and, if asked for, `hidden_states`, a tuple of L such tensors.
        """
        values = self.layers(input_ids, attention_mask)
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        return BaseModelOutput(values[-1], tuple(values) if output_hidden_states else None)


class ElmoForTokenClassification(ElmoPreTrainedModel):
    """A label for each word: a learnt mix of the layers (section 3.3 of the paper), dropout, and a linear layer.

    All weights are trained unless the biLM is frozen by `model.bilm.requires_grad_(False)`, which is many times faster.

    Args:
        config: The sizes of the model and `num_labels` or `id2label`; `from_pretrained` reads a trained biLM.
    """

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__(config)
        self.mix = ScalarMix(config.bilm.layers)
        self.dropout = nn.Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    @can_return_tuple  # type: ignore[untyped-decorator]
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
    ) -> TokenClassifierOutput:
        """Compute the scores of labels and, if labels are given, the loss.

        Args:
            input_ids, attention_mask: What the tokenizer returns; see `layers`.
            labels: The labels of words (B, T), -100 for those that do not count.
            output_hidden_states: Return the layers, too.

        Returns:
            `logits` (B, T, labels), the mean cross entropy as `loss`, and `hidden_states` as of `ElmoModel`.
        """
        values = self.layers(input_ids, attention_mask)
        logits = self.classifier(self.dropout(self.mix(values)))
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten().long())
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        return TokenClassifierOutput(loss, logits, tuple(values) if output_hidden_states else None)


AutoConfig.register(ElmoConfig.model_type, ElmoConfig, exist_ok=True)
AutoModel.register(ElmoConfig, ElmoModel, exist_ok=True)
AutoModelForTokenClassification.register(ElmoConfig, ElmoForTokenClassification, exist_ok=True)
AutoTokenizer.register(ElmoConfig, ElmoTokenizer, exist_ok=True)
