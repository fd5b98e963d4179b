"""ELMo as an input module of sentence-transformers: sentences -> one vector each, as `Embedder.encode` gives them.

    SentenceTransformer(modules=[ElmoSentences("en")])

For token vectors with the library's own pooling, and for training, its `Transformer` module reads ELMo as soon as
`pyelmo.integrations.transformers` is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyelmo.embed.embedder import Embedder, Precision
from pyelmo.embed.embedder import load as load_embedder
from pyelmo.errors import NotFoundError, missing_extra

try:
    from sentence_transformers.base.modules import InputModule
except ImportError:
    raise missing_extra("sentence-transformers", "ELMo for sentence-transformers") from None

MODEL = "model"  # the folder of the model in the folder of the module


class ElmoSentences(InputModule):  # type: ignore[misc]
    """One vector per sentence. The model is not trained.

    A saved model names this class, so that sentence-transformers asks for `trust_remote_code=True` to load it;
    `SentenceTransformer(modules=[ElmoSentences.load(FOLDER, "0_ElmoSentences")])` does without.

    Args:
        model: A source of `pyelmo.load`, or an embedder.
        layers, pooling: As in `Embedder.encode`. Without either, the sentence form of the model, if it has one.
        precision: As in `pyelmo.load`; an embedder has its own.
        device: As in `pyelmo.load`; an embedder has its own.

    Raises:
        NotFoundError: There is no such model or file.
        FormatError: A file is damaged, or not a model.
        InputError: An argument cannot be used.

    Example:
        >>> from sentence_transformers import SentenceTransformer
        >>> from pyelmo.integrations.sentence_transformers import ElmoSentences
        >>> model = SentenceTransformer(modules=[ElmoSentences("en")])
        >>> model.encode(["A bank account.", "The river."]).shape
        (2, 1024)
    """

    save_in_root = False
    config_keys = ["layers", "pooling", "precision"]  # noqa: RUF012

    def __init__(
        self,
        model: str | Path | Embedder,
        *,
        layers: str | int | Sequence[float] | None = None,
        pooling: str | None = None,
        precision: Precision = "float32",
        device: str = "cpu",
    ) -> None:
        super().__init__()
        self.embedder = (
            model if isinstance(model, Embedder) else load_embedder(model, precision=precision, device=device)
        )
        self.layers, self.pooling, self.precision = layers, pooling, self.embedder.precision
        self._encode([])  # an error about layers or pooling comes now

    def _encode(self, sentences: Sequence[Any]) -> Any:
        return self.embedder.encode(sentences, layers=self.layers, pooling=self.pooling, convert_to_tensor=True)

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: Any) -> dict[str, Any]:
        """Split sentences into words.

        Args:
            inputs: Strings, or lists of words.
            prompt: A text that is put before each string.
            kwargs: Not used.

        Returns:
            The words of each sentence under "words".
        """
        texts = [prompt + text if prompt and isinstance(text, str) else text for text in inputs]
        return {"words": [self.embedder.tokenise(text, number) for number, text in enumerate(texts)]}

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add the vectors (B, D) as "sentence_embedding".

        Args:
            features: What `preprocess` returns.
            kwargs: Not used.

        Returns:
            The features with the vectors.
        """
        return {**features, "sentence_embedding": self._encode(features["words"])}

    def get_embedding_dimension(self) -> int:
        """Return the size D of a vector."""
        return self.embedder.config.dim

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write the settings and the model, which `pyelmo.load` reads, too.

        Args:
            output_path: An existing folder.
            args, safe_serialization, kwargs: Not used: the weights are always a safetensors file.
        """
        self.save_config(output_path)
        self.embedder.save(Path(output_path) / MODEL, force=True)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> ElmoSentences:
        """Read what `save` wrote.

        Args:
            model_name_or_path: A folder, or the id of a model on the Hub.
            subfolder: The folder of this module in it.
            kwargs: Arguments for the Hub, such as `revision` and `token`.

        Returns:
            The module.

        Raises:
            NotFoundError: There is no such folder or model.
        """
        names = ("token", "cache_folder", "revision", "local_files_only")
        hub = {name: kwargs[name] for name in names if name in kwargs}
        settings = cls.load_config(model_name_or_path, subfolder=subfolder, **hub)
        folder = cls.load_dir_path(model_name_or_path, subfolder=subfolder, **hub)
        if folder is None:
            raise NotFoundError(f"{Path(model_name_or_path, subfolder)}: no such folder, and no such model on the Hub")
        return cls(Path(folder) / MODEL, **settings)
