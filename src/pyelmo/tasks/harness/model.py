"""A task model: word representations and the network of a task, from examples to losses and predictions.

B batch, T time steps. `storage.py` saves and loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from pyelmo.embed.embedder import Embedder
from pyelmo.errors import InputError
from pyelmo.tasks.harness.batching import WordIdCache, length_batches, pad_ids
from pyelmo.tasks.harness.metrics import Score
from pyelmo.tasks.harness.settings import TaskRecipe
from pyelmo.tasks.harness.task import (
    Example,
    NetworkInputs,
    Prediction,
    Task,
    TextOrWords,
    Vocabularies,
    Words,
    read_examples,
)
from pyelmo.tasks.inputs.embedding_table import WordIndex
from pyelmo.tasks.inputs.layer_sources import LayerSource, trainable_layers
from pyelmo.tasks.inputs.representation import EncoderShape, Representation

BATCH = 256  # examples in a batch of predictions


class TaskModel(nn.Module):
    """Word representations and a task network. `layer_source` computes the encoder layers of sentences."""

    def __init__(
        self, task: Task, recipe: TaskRecipe, vocabularies: Vocabularies, table: Tensor, shape: EncoderShape | None
    ) -> None:
        super().__init__()
        self.task, self.recipe, self.vocabularies, self.shape = task, recipe, vocabularies, shape
        self.representation = Representation(table, recipe.words, shape, recipe.elmo)
        self.network = task.build_network(recipe, self.representation.sizes, vocabularies)
        self.word_ids = WordIdCache(WordIndex(vocabularies["words"]).__getitem__)
        self.layer_source: LayerSource | None = None
        self.bilm: nn.Module | None = None
        self.embedder: Embedder | None = None

    def train_encoder(self, embedder: Embedder) -> None:
        """Make a biLM a part of this model, to be trained with the network."""
        self.embedder, self.bilm, self.layer_source = embedder, embedder.bilm, trainable_layers(embedder)
        self.bilm.requires_grad_(True)
        if embedder.bilm.softmax is not None:
            embedder.bilm.softmax.requires_grad_(False)

    @property
    def device(self) -> torch.device:
        weight: Tensor = self.representation.words.weight
        return weight.device

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """Return the mean loss of a batch, including the penalty on the layer weights."""
        loss: Tensor = self.network.loss(*self._inputs(examples)) + self.representation.penalty()
        return loss

    def predict_examples(self, examples: Sequence[Example], *, progress: bool = False) -> list[Prediction]:
        """Return the predictions for examples, in their order."""
        return self._in_batches(self.network.predict, examples, progress)

    def probabilities(self, examples: Sequence[Example], *, progress: bool = False) -> list[Tensor]:
        """Return the probabilities of each example, if the network is a `ProbabilisticNetwork`."""
        return self._in_batches(
            lambda *texts: [values.cpu() for values in self.network.probabilities(*texts)], examples, progress
        )

    def predict(self, texts: Sequence[TextOrWords | Sequence[TextOrWords]]) -> list[list[Any]]:
        """Predict the labels of raw texts.

        Args:
            texts: A list of inputs. For tasks about one text (ner, srl, sentiment, coref) an input is a string, or a
                list of words if the text is already tokenised. For tasks about two texts an input is a pair of these:
                premise and hypothesis (nli), or passage and question (qa).

        Returns:
            For each input a list of answers, in the order of the inputs: a `LabelAnswer` (sentiment, nli), a
            `SpansAnswer` (ner; srl has one for each predicate of the sentence), a `PassageAnswer` (qa) or a
            `CoreferenceAnswer` (coref), with probabilities and with offsets of characters. The list of an input
            without words is empty.

        Raises:
            InputError: `texts` is a single string, an input has the wrong number of texts, or one text of a pair has no
                words.

        Example:
            >>> from pyelmo import tasks
            >>> model = tasks.load("run")
            >>> [[answer]] = model.predict(["Ann Lee lives in New York ."])
            >>> answer.labels
            ('B-PER', 'I-PER', 'O', 'O', 'B-LOC', 'I-LOC', 'O')
            >>> [(span.label, span.text, span.start, span.end) for span in answer.spans]
            [('PER', 'Ann Lee', 0, 7), ('LOC', 'New York', 17, 25)]
            >>> all(span.probability > 0.5 for span in answer.spans)
            True
            >>> model.task.format([answer])
            '[PER Ann Lee] lives in [LOC New York] .'
        """
        if isinstance(texts, str):
            raise InputError("texts is one string. Give a list of texts: predict([text]).")
        examples_of = [self._read_input(number, given) for number, given in enumerate(texts)]
        examples = [example for examples in examples_of for example in examples]
        answers = iter(self._in_batches(self.network.answer, examples, progress=False))
        return [[next(answers) for _ in examples] for examples in examples_of]

    def _read_input(self, number: int, given: Any) -> list[Example]:
        """Return the examples of one input; there is none if it has no words."""
        names = self.task.input_names
        inputs: Any = (given,) if len(names) == 1 else given
        if isinstance(inputs, str) or len(inputs) != len(names):
            raise InputError(
                f"input {number}: {self.task.name} needs {len(names)} texts ({', '.join(names)}), got "
                f"{'one string' if isinstance(inputs, str) else len(inputs)}"
            )
        if all(_is_blank(text) for text in inputs):
            return []
        for name, text in zip(names, inputs, strict=True):
            if _is_blank(text):
                raise InputError(f"input {number}: the {name} has no words")
        try:
            examples = self.task.make_examples(inputs, self.recipe.data, self.vocabularies)
        except InputError as error:
            raise InputError(f"input {number}: {error}") from error
        return [example for example in examples if example.texts and all(example.texts)]

    def evaluate(self, path: str | Path, *, progress: bool = False) -> Score:
        """Score the predictions for a labelled file.

        Args:
            path: A file in the format of the training data.
            progress: Show a progress bar.

        Returns:
            The scores in percent. `main` is the score by the metric of the task, `figures` has all scores by name, and
            `sums` has the counts that they were computed from.

        Raises:
            NotFoundError: There is no such file.
            FormatError: The file is malformed, empty, or has a label that the training set lacks.

        Example:
            >>> from pyelmo import tasks
            >>> model = tasks.load("run")
            >>> score = model.evaluate("test.conll")
            >>> list(score.figures)
            ['f1', 'precision', 'recall']
            >>> score.main == score.figures["f1"] > 90
            True
        """
        examples = read_examples(self.task, path, self.recipe.data, self.vocabularies)
        return score_predictions(self.task, examples, self.predict_examples(examples, progress=progress))

    def _in_batches(self, answer: Callable[..., list[Any]], examples: Sequence[Example], progress: bool) -> list[Any]:
        """Apply a function of the network to all examples, in batches of similar length."""
        results: dict[int, Any] = {}
        size = BATCH if self.task.texts_per_example else 1
        batches = length_batches([example.length for example in examples], size)
        self.eval()
        with torch.no_grad():
            for indices in tqdm(batches, desc="predicting", leave=False, disable=not progress):
                inputs = self._inputs([examples[index] for index in indices])
                results.update(zip(indices, answer(*inputs), strict=True))
        return [results[index] for index in range(len(examples))]

    def _inputs(self, examples: Sequence[Example]) -> list[NetworkInputs]:
        """Return the inputs for each text of the examples, or one for all texts of a single example."""
        if not self.task.texts_per_example:
            (example,) = examples
            return [self._embed(examples, example.texts)]
        return [
            self._embed(examples, [example.texts[number] for example in examples])
            for number in range(self.task.texts_per_example)
        ]

    def _embed(self, examples: Sequence[Example], texts: Sequence[Words]) -> NetworkInputs:
        lengths = [len(text) for text in texts]
        ids = pad_ids(self.word_ids(texts), lengths, self.device, -1)  # (B, T)
        mask = ids >= 0
        layers = None
        if self.layer_source is not None:
            layers = self.layer_source(texts).to(self.device, non_blocking=True).float()
        inputs: NetworkInputs = self.representation(examples, ids.clamp_(min=0), mask, layers, lengths)
        return inputs

    def own_state(self) -> dict[str, Tensor]:
        """Return all weights but those of a biLM, which is saved in a folder of its own."""
        return {name: tensor for name, tensor in self.state_dict().items() if not name.startswith("bilm.")}


def _is_blank(text: TextOrWords) -> bool:
    return not (text.strip() if isinstance(text, str) else text)


def score_predictions(task: Task, examples: Sequence[Example], predictions: Sequence[Prediction]) -> Score:
    return task.metric.score([task.count(*pair) for pair in zip(examples, predictions, strict=True)])
