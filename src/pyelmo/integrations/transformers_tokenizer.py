"""The tokenizer of `pyelmo.integrations.transformers`: text -> one row of numbers per word.

    "A bank" --> words ["A", "bank"] --> input_ids (T, C), attention_mask (T,)

C is the number of symbols of a word, for a model that reads symbols, plus one for the id of the word, for a model that
reads words. Padding rows have `pad_token_id` everywhere and 0 in attention_mask.

T words of a sentence, C numbers of a word.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.arrays import Int64Array
from pyelmo.errors import InputError, missing_extra
from pyelmo.files import write_text
from pyelmo.formats import resolve
from pyelmo.formats.native import CHARACTERS, VOCABULARY, read_dictionary
from pyelmo.text.characters import Alphabet, Bytes, Dictionary, Jamo
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.normalisation import normalise_words
from pyelmo.text.tokens import check_language, split_within, split_words
from pyelmo.text.vocabulary import Vocabulary

try:
    from transformers import BatchEncoding, PreTrainedTokenizer
    from transformers.tokenization_utils_base import PaddingStrategy, TruncationStrategy
except ImportError:
    raise missing_extra("transformers", "ELMo for transformers") from None

# Arguments of `from_pretrained` that are for the Hub, or between classes of transformers.
HUB = ("cache_dir", "force_download", "local_files_only", "token", "revision", "subfolder", "proxies", "use_fast",
       "trust_remote_code", "_from_auto", "_from_pipeline", "_commit_hash")  # fmt: skip
ALPHABETS: dict[type, str] = {Bytes: "bytes", Jamo: "jamo", Dictionary: "dictionary"}


def word_rows(lexicon: Lexicon, words: Sequence[str]) -> Int64Array:  # (T,) -> (T, C)
    """Return the numbers of each word: its symbols, then its id, of which a model may read only one."""
    encoded = lexicon.encode(words)
    ids = None if encoded.words is None else encoded.words[:, None]
    return np.concatenate([part for part in (encoded.chars, ids) if part is not None], axis=1).astype(np.int64)


def locate(source: str | Path, revision: str | None = None) -> Path:
    """Return the path of a source of `pyelmo.load`; `revision` is for a model on the Hub, as user/name@revision."""
    on_hub = revision not in (None, "main") and not Path(source).exists()
    return resolve.locate(f"{source}@{revision}" if on_hub else source)


@dataclass(frozen=True)
class WordEncoding:
    """The words of one sentence, for `BatchEncoding.tokens`, `word_ids` and `sequence_ids`."""

    tokens: list[str]
    word_ids: list[int | None]  # None for padding
    n_sequences: int = 1

    @property
    def sequence_ids(self) -> list[int | None]:
        return [None if number is None else 0 for number in self.word_ids]


class ElmoTokenizer(PreTrainedTokenizer):  # type: ignore[misc]
    """Splits text into words by the rules of the model's language, and writes each word as a row of numbers.

    `from_pretrained` takes every source of `pyelmo.load`, and folders of `save_pretrained`. Calls have the arguments of
    other tokenizers; `max_length` counts words. A list of words (`is_split_into_words=True`) keeps its words, unless
    the tokenizer was made with `split_words=True`. There are no special tokens, pairs, offsets or left padding, and
    rows are not decoded to words: `encoding.tokens()` has them.

    Args:
        vocab_file: The words of a model that reads words, one per line.
        characters_file: The symbols of a model with an alphabet of its own (ELMoForManyLangs).
        lexicon: The alphabet and the vocabulary themselves, in place of the files and the next three arguments.
        alphabet: "bytes", "jamo", "dictionary" or None, for a model that reads only words.
        max_word_length: The number of symbols of a word.
        marks: The spelling of the special tokens in `vocab_file`.
        language: The rules that split strings: "en", "ko", "ko-morph" (needs the extra `ko`) or "general".
        split_words: Split the words of lists by these rules, too, as for Korean eojeols with a model of morphemes;
            `word_ids` then says to which word a token belongs.
        kwargs: The arguments of `transformers.PreTrainedTokenizer`.

    Raises:
        InputError: The language or the alphabet is unknown.

    Example:
        >>> from pyelmo.integrations.transformers import ElmoTokenizer
        >>> encoding = ElmoTokenizer.from_pretrained("en")("They don't lend.", return_tensors="pt")
        >>> encoding.input_ids.shape, encoding.tokens()
        (torch.Size([1, 5, 50]), ['They', 'do', "n't", 'lend', '.'])
    """

    vocab_files_names = {"vocab_file": VOCABULARY, "characters_file": CHARACTERS}  # noqa: RUF012
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012

    def __init__(
        self,
        vocab_file: str | None = None,
        characters_file: str | None = None,
        *,
        lexicon: Lexicon | None = None,
        alphabet: str | None = "bytes",
        max_word_length: int = 50,
        marks: Mapping[str, str] | None = None,
        language: str = "general",
        split_words: bool = False,
        pad_token: str = "<pad>",
        **kwargs: Any,
    ) -> None:
        check_language(language)
        if lexicon is None:
            lexicon = _read_lexicon(vocab_file, characters_file, alphabet, max_word_length, marks)
        self.lexicon, self.language, self.split_words = lexicon, language, split_words
        # What tokenizer_config.json gets: attributes with the names of these arguments.
        own, vocab = lexicon.alphabet, lexicon.vocab if lexicon.reads_words else None
        self.alphabet = None if own is None else ALPHABETS[type(own)]
        self.max_word_length = 0 if own is None else own.max_length
        self.marks = None if vocab is None else {name: getattr(vocab, name) for name in ("begin", "end", "unknown")}
        settings = ("language", "split_words", "alphabet", "max_word_length", "marks")
        super().__init__(pad_token=pad_token, **{name: getattr(self, name) for name in settings}, **kwargs)

    @classmethod
    def from_pretrained(cls, source: str | Path, *inputs: Any, **kwargs: Any) -> ElmoTokenizer:
        """Read a tokenizer.

        Args:
            source: A source of `pyelmo.load`, or a folder of `save_pretrained`.
            inputs, kwargs: As for other tokenizers; `split_words=True` is one of them.

        Returns:
            The tokenizer.

        Raises:
            NotFoundError: There is no such model or file.
            FormatError: A file is damaged, or not a model.
        """
        path = locate(source, kwargs.get("revision"))
        if (path / "tokenizer_config.json").is_file():
            tokenizer: ElmoTokenizer = super().from_pretrained(path, *inputs, **kwargs)
            return tokenizer
        model = resolve.read(path)
        settings = {"language": model.language or "general", **kwargs}
        return cls(lexicon=model.lexicon, **{name: value for name, value in settings.items() if name not in HUB})

    @property
    def row_size(self) -> int:
        """The number C of a word's numbers."""
        return self.max_word_length + int(self.lexicon.reads_words)

    @property
    def vocab_size(self) -> int:
        return len(self.get_vocab())

    def get_vocab(self) -> dict[str, int]:
        """Return the words of a model that reads words. Symbols are not listed, as they are not tokens."""
        vocab = self.lexicon.vocab
        return dict(vocab.ids) if self.lexicon.reads_words and vocab is not None else {"<pad>": 0}

    def tokenize(self, text: str, **kwargs: Any) -> list[str]:
        """Return the words of a text."""
        return split_words(text, self.language)

    def _convert_token_to_id(self, token: str) -> list[int]:
        row: list[int] = word_rows(self.lexicon, [token])[0].tolist()
        return row

    def convert_ids_to_tokens(self, ids: Any, skip_special_tokens: bool = False) -> Any:
        """Refuse to turn rows back into words, which `decode` would need, too.

        Raises:
            InputError: Always.
        """
        raise InputError("ElmoTokenizer: ids are not decoded to words; the tokens() of an encoding has them")

    def _words(self, text: Any, is_split: bool, cut: slice) -> WordEncoding:
        if isinstance(text, str) and not is_split:
            words = split_words(text, self.language)
            owners = list(range(len(words)))
        elif is_split and isinstance(text, (list, tuple)) and all(isinstance(word, str) for word in text):
            words, owners = self._split_list(text)
        else:
            raise InputError(
                f"expected {'a list of words' if is_split else 'a string'}, got {str(text)[:80]!r}. Pass lists of "
                "words with is_split_into_words=True; pairs of sentences cannot be read"
            )
        return WordEncoding(words[cut], [*owners[cut]])

    def _split_list(self, text: Sequence[str]) -> tuple[list[str], list[int]]:
        if not self.split_words:
            return normalise_words(text, self.language), list(range(len(text)))
        words, groups = split_within(text, self.language)
        owners = [0] * len(words)
        for number, (first, end) in reversed(list(enumerate(groups))):  # a word shared by two belongs to the first
            owners[first:end] = [number] * (end - first)
        return words, owners

    def _encode_plus(  # what __call__ and encode use
        self,
        text: Any,
        text_pair: Any = None,
        *,
        padding_strategy: PaddingStrategy = PaddingStrategy.DO_NOT_PAD,
        truncation_strategy: TruncationStrategy = TruncationStrategy.DO_NOT_TRUNCATE,
        max_length: int | None = None,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: Any = None,
        return_attention_mask: bool | None = None,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_overflowing_tokens: bool = False,
        **kwargs: Any,
    ) -> BatchEncoding:
        if text_pair is not None or return_offsets_mapping or return_overflowing_tokens:
            raise InputError("ElmoTokenizer: pairs of sentences, offsets and overflowing tokens are not available")
        cut = slice(None)
        if truncation_strategy != TruncationStrategy.DO_NOT_TRUNCATE and max_length is not None:
            cut = slice(max_length) if self.truncation_side == "right" else slice(-max_length, None)
        if not isinstance(text, Iterable):
            raise InputError(f"expected a string or a list of strings, got {type(text).__name__}")
        single = isinstance(text, str) or (is_split_into_words and all(isinstance(word, str) for word in text))
        sentences = [self._words(item, is_split_into_words, cut) for item in ([text] if single else text)]
        data: dict[str, Any] = {"input_ids": [word_rows(self.lexicon, item.tokens) for item in sentences]}
        if return_special_tokens_mask:
            data["special_tokens_mask"] = [[0] * len(item.tokens) for item in sentences]
        padded = self.pad(
            data, padding_strategy, max_length, pad_to_multiple_of, padding_side, return_attention_mask, return_tensors
        )
        for rows, item in zip(padded["input_ids"], sentences, strict=True):
            item.word_ids.extend([None] * (len(rows) - len(item.tokens)))
            item.tokens.extend([self.pad_token] * (len(rows) - len(item.tokens)))
        flat = single and return_tensors is None
        return BatchEncoding({key: value[0] for key, value in padded.items()} if flat else padded.data, sentences)

    def pad(
        self,
        encoded_inputs: Any,
        padding: Any = True,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_attention_mask: bool | None = None,
        return_tensors: Any = None,
        verbose: bool = True,
    ) -> BatchEncoding:
        """Append padding rows to the sentences of a batch, as data collators ask for it.

        Args:
            encoded_inputs: Encodings, as a list of dictionaries or a dictionary of lists. Other keys than input_ids,
                attention_mask and special_tokens_mask stay as they are.
            padding, max_length, pad_to_multiple_of, return_attention_mask, return_tensors: As for other tokenizers.
            padding_side: Only "right", because a sentence begins at the first position.
            verbose: Whether transformers may warn.

        Returns:
            The padded batch: lists, or tensors (B, T, C) and (B, T).

        Raises:
            InputError: Padding on the left.
        """
        if (padding_side or self.padding_side) != "right":
            raise InputError("padding_side 'left': ELMo reads a sentence from the first position. Use 'right'")
        if not isinstance(encoded_inputs, Mapping):
            encoded_inputs = {key: [item[key] for item in encoded_inputs] for key in encoded_inputs[0]}
        batch = dict(encoded_inputs)
        arrays = [np.asarray(ids, dtype=np.int64) for ids in batch["input_ids"]]
        if any(array.ndim != 2 and array.size for array in arrays):
            raise InputError("pad: expected a batch of sentences. Put a single one into a list: pad([encoding])")
        rows = [array.reshape(-1, self.row_size) for array in arrays]
        strategy, _, max_length, _ = self._get_padding_truncation_strategies(
            padding=padding, max_length=max_length, verbose=verbose
        )
        lengths = [len(row) for row in rows]
        targets = lengths
        if strategy != PaddingStrategy.DO_NOT_PAD:
            least = max_length if strategy == PaddingStrategy.MAX_LENGTH and max_length is not None else 0
            longest = max([least, *lengths])
            targets = [longest - longest % -(pad_to_multiple_of or 1)] * len(lengths)
        batch["input_ids"] = [
            np.concatenate([row, np.full((target - len(row), self.row_size), self.pad_token_id)])
            for row, target in zip(rows, targets, strict=True)
        ]
        if return_attention_mask is not False:
            batch.setdefault("attention_mask", [[1] * length for length in lengths])
        for key, filler in (("attention_mask", 0), ("special_tokens_mask", 1)):
            if key in batch:
                batch[key] = [
                    np.concatenate([np.asarray(mask, dtype=np.int64), np.full(target - len(mask), filler)])
                    for mask, target in zip(batch[key], targets, strict=True)
                ]
        if return_tensors is None:
            own = ("input_ids", "attention_mask", "special_tokens_mask")
            batch = {key: [row.tolist() for row in value] if key in own else value for key, value in batch.items()}
        return BatchEncoding(batch, tensor_type=return_tensors)

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Write vocab.txt, if the model reads words, and characters.json, if it has an alphabet of its own.

        Args:
            save_directory: An existing folder.
            filename_prefix: Not used: pyelmo reads these names only.

        Returns:
            The paths of the files.
        """
        paths = []
        if self.lexicon.reads_words and self.lexicon.vocab is not None:
            paths.append(Path(save_directory) / VOCABULARY)
            self.lexicon.vocab.save(paths[-1])
        if isinstance(self.lexicon.alphabet, Dictionary):
            paths.append(Path(save_directory) / CHARACTERS)
            write_text(paths[-1], json.dumps({"symbols": list(self.lexicon.alphabet.symbols)}))
        return tuple(map(str, paths))


def _read_lexicon(
    vocab_file: str | None,
    characters_file: str | None,
    alphabet: str | None,
    size: int,
    marks: Mapping[str, str] | None,
) -> Lexicon:
    own: Alphabet | None = None
    if alphabet == "dictionary" and characters_file is not None:
        own = read_dictionary(Path(characters_file), size)
    elif alphabet in ("bytes", "jamo"):
        own = (Bytes if alphabet == "bytes" else Jamo)(size)
    elif alphabet is not None:
        raise InputError(f"alphabet {alphabet!r} is none of {', '.join(ALPHABETS.values())}, or its file is missing")
    vocab = Vocabulary.load(vocab_file, **(marks or {})) if marks is not None and vocab_file is not None else None
    return Lexicon(own, vocab, reads_words=vocab is not None)
