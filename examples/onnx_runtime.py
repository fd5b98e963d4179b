"""Embed sentences by an ONNX file with onnxruntime and numpy: no torch, and no engine of pyelmo.

    elmo convert en en.onnx
    python examples/onnx_runtime.py en.onnx "The bank of the river." "A bank account."

pyelmo splits the text and numbers the words. In another language, do the same: the inputs are described in
docs/guides/onnx.md.
"""

from __future__ import annotations

import sys

import numpy as np
import onnxruntime

from pyelmo.integrations.onnx import read_lexicon
from pyelmo.text.tokens import split_words


class OnnxElmo:
    """A model in an ONNX file."""

    def __init__(self, path: str, threads: int = 0) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads  # 0: as many as there are cores
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.lexicon, self.language = read_lexicon(self.session.get_modelmeta().custom_metadata_map)
        self.inputs = {value.name for value in self.session.get_inputs()}

    def embed(self, sentences: list[str | list[str]], batch_size: int = 32) -> list[np.ndarray]:
        """Return the layers (L, T, D) of each sentence."""
        words = [split_words(text, self.language) if isinstance(text, str) else text for text in sentences]
        order = sorted(range(len(words)), key=lambda number: len(words[number]))  # so that batches have little padding
        results: list[np.ndarray] = [np.empty(0)] * len(words)
        for start in range(0, len(order), batch_size):
            numbers = order[start : start + batch_size]
            for number, layers in zip(numbers, self._run([words[number] for number in numbers]), strict=True):
                results[number] = layers
        return results

    def _run(self, sentences: list[list[str]]) -> list[np.ndarray]:
        distinct, index, lengths = self.lexicon.batch(sentences)
        encoded = self.lexicon.encode(distinct)
        values = {"chars": encoded.chars, "words": encoded.words, "index": index, "lengths": lengths}
        (layers,) = self.session.run(None, {name: values[name] for name in self.inputs})
        return [layers[:, row, : length - 2] for row, length in enumerate(lengths)]


if __name__ == "__main__":
    for text, layers in zip(sys.argv[2:], OnnxElmo(sys.argv[1]).embed(sys.argv[2:]), strict=True):
        print(f"{layers.shape}  {text}")
