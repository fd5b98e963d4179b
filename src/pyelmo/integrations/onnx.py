"""Write a model as an ONNX file, which onnxruntime computes in many languages and on many devices.

    chars (U, C), words (U,)   the distinct words of a batch, as `Lexicon.encode` returns them; a model has one or both
    index (B, T)               the number of each token's word, with boundary tokens, as `Lexicon.batch` returns it
    lengths (B,)               the number of tokens of each sentence, with boundary tokens
    -> layers (L, B, T - 2, D) all layers without boundary tokens; 0 where a sentence has ended

The graph is written node by node from the weights, without torch. Its LSTM is a Scan: ONNX's own LSTM has no
projection. The metadata of the file hold what turns text into these inputs (`read_lexicon`).

U words, C symbols of a word, E symbol embedding, B sentences, T tokens, P size of one direction, L layers, D vector.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.config import ModelConfig, from_dict, to_dict, weight_shapes
from pyelmo.errors import InputError, missing_extra
from pyelmo.files import atomic_path, check_output
from pyelmo.formats.pretrained import Pretrained, floats
from pyelmo.text.characters import Alphabet, Bytes, Dictionary, Jamo
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.vocabulary import Vocabulary
from pyelmo.version import __version__

SUFFIX = ".onnx"
OPSET, IR_VERSION = 17, 8  # read by every onnxruntime since 1.12
MAX_BYTES = 2**31 - 2**20  # the format is protobuf, whose messages are below 2 GiB


def write(model: Pretrained, path: str | Path, *, force: bool = False) -> None:
    """Write a model as one ONNX file with float32 weights; its softmax is left out.

    Args:
        model: The model.
        path: The file to write.
        force: Replace what exists.

    Raises:
        InputError: The weights do not fit into one file (2 GiB), or the vocabulary of a model that reads words is
            unknown.
        MissingExtraError: The extra `onnx` is not installed.
        OutputError: The path exists, or cannot be written.
    """
    onnx = _library(f"{path}: writing ONNX")
    path = Path(path)
    check_output(path, force=force)
    if model.lexicon.reads_words and model.lexicon.vocab is None:
        raise InputError(f"{model.source}: the words that it reads are unknown. Give its vocabulary (--vocab FILE).")
    shapes = {name: shape for name, shape in weight_shapes(model.config).items() if not name.startswith("softmax")}
    size = 4 * sum(int(np.prod(shape)) for shape in shapes.values())
    if size > MAX_BYTES:
        raise InputError(f"{path}: {size / 2**30:.1f} GiB of weights, but an ONNX file has at most 2 GiB")
    graph = _Graph(onnx, model.config, {name: floats(model.weights[name]) for name in shapes})
    proto = onnx.helper.make_model(
        graph.build(), opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR_VERSION,
        producer_name="pyelmo", producer_version=__version__,
    )  # fmt: skip
    onnx.helper.set_model_props(proto, _metadata(model))
    onnx.checker.check_model(proto)
    with atomic_path(path, force=force) as part:
        part.write_bytes(proto.SerializeToString())


def read_lexicon(metadata: Mapping[str, str]) -> tuple[Lexicon, str]:
    """Return how the model of an ONNX file reads words, and the language whose rules split its text.

    Args:
        metadata: The metadata of the file: `session.get_modelmeta().custom_metadata_map` in onnxruntime.

    Returns:
        The lexicon, whose `batch` and `encode` make the inputs of the graph, and the language for `split_words`.
    """
    config = from_dict(ModelConfig, json.loads(metadata["config"]))
    alphabet: Alphabet | None = None
    if config.chars is not None:
        length = config.chars.max_length
        if config.chars.alphabet == "dictionary":
            alphabet = Dictionary(tuple(json.loads(metadata["symbols"])), length)
        else:
            alphabet = (Jamo if config.chars.alphabet == "jamo" else Bytes)(length)
    words = json.loads(metadata["words"])
    vocab = Vocabulary(words, **json.loads(metadata["special"])) if words else None
    return Lexicon(alphabet, vocab, reads_words=config.words is not None), metadata["language"]


def _metadata(model: Pretrained) -> dict[str, str]:
    vocab, alphabet = model.lexicon.vocab, model.lexicon.alphabet
    special = {"begin": vocab.begin, "end": vocab.end, "unknown": vocab.unknown} if vocab else {}
    # A model that only predicts words needs no vocabulary here but for the spelling of the boundary tokens.
    words = list(vocab) if vocab and model.lexicon.reads_words else list(special.values())
    symbols = list(alphabet.symbols) if isinstance(alphabet, Dictionary) else []
    return {
        "config": json.dumps(to_dict(model.config)),
        "language": model.language or "general",
        "special": json.dumps(special),
        "words": json.dumps(words),
        "symbols": json.dumps(symbols),
    }


class _Graph:
    """The nodes and the weights of a graph while it is written. A method adds nodes and returns the name of a value."""

    def __init__(self, onnx: Any, config: ModelConfig, weights: Mapping[str, Float32Array]) -> None:
        self.helper, self.types, self.to_tensor = onnx.helper, onnx.TensorProto, onnx.numpy_helper.from_array
        self.config, self.weights = config, weights
        self.numbers = itertools.count()  # names are unique in the whole graph, steps of the LSTMs included
        self.nodes: list[Any] = []
        self.tensors: dict[str, Any] = {}

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output."""
        return self.add_all(kind, *inputs, outputs=1, **attributes)[0]

    def add_all(self, kind: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        names = [f"{kind}_{next(self.numbers)}" for _ in range(outputs)]
        self.nodes.append(self.helper.make_node(kind, inputs, names, **attributes))
        return names

    def constant(self, name: str, values: Any, dtype: type = np.float32) -> str:
        if name not in self.tensors:
            self.tensors[name] = self.to_tensor(np.ascontiguousarray(values, dtype), name)
        return name

    def integers(self, *values: int) -> str:
        return self.constant(f"integers_{'_'.join(map(str, values))}", values, np.int64)

    def weight(self, name: str) -> str:
        return self.constant(name, self.weights[name])

    def linear(self, inputs: str, name: str) -> str:
        """Return W x + b for the rows of a matrix."""
        return self.add("Gemm", inputs, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"), transB=1)

    def build(self) -> Any:
        config, info = self.config, self.helper.make_tensor_value_info
        tokens = self.tokens()  # (T, B, P)
        layers = [self.add("Concat", *[tokens] * config.directions, axis=2), *self.lstm_layers(tokens)]  # (T, B, D)
        self.mask_and_stack(layers)
        inputs = [
            *([info("chars", self.types.INT32, ["U", config.chars.max_length])] if config.chars else []),
            *([info("words", self.types.INT32, ["U"])] if config.words else []),
            info("index", self.types.INT32, ["B", "T"]),
            info("lengths", self.types.INT64, ["B"]),
        ]
        outputs = [info("layers", self.types.FLOAT, [config.layers, "B", None, config.dim])]
        return self.helper.make_graph(self.nodes, "elmo", inputs, outputs, list(self.tensors.values()))

    def tokens(self) -> str:
        """Return the token layer, with the time first."""
        parts = []
        if self.config.words:
            parts.append(self.add("Gather", self.weight("words.weight"), "words"))
        if self.config.chars:
            parts.append(self.char_features())
        features = self.add("Concat", *parts, axis=1)  # (U, F)
        vectors = self.linear(features, "projection") if self.config.project else features  # (U, P)
        return self.add("Gather", vectors, self.add("Transpose", "index", perm=[1, 0]))

    def char_features(self) -> str:
        chars = self.config.chars
        assert chars is not None
        embedded = self.add("Gather", self.weight("chars.embedding.weight"), "chars")  # (U, C, E)
        embedded = self.add("Transpose", embedded, perm=[0, 2, 1])
        maxima = []
        for number in range(len(chars.filters)):
            name = f"chars.convolutions.{number}"
            weight, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
            maxima.append(self.add("ReduceMax", self.add("Conv", embedded, weight, bias), axes=[2], keepdims=0))
        features = self.add("Relu" if chars.activation == "relu" else "Tanh", self.add("Concat", *maxima, axis=1))
        for number in range(chars.highways):
            gate = self.add("Sigmoid", self.linear(features, f"chars.highways.{number}.gate"))
            new = self.add("Relu", self.linear(features, f"chars.highways.{number}.transform"))
            # g y + (1 - g) x = x + g (y - x)
            features = self.add("Add", features, self.add("Mul", gate, self.add("Sub", new, features)))
        return features

    def lstm_layers(self, tokens: str) -> list[str]:
        """Return each LSTM layer. A backward LSTM reads each sentence from its own end, so padding comes last."""
        reverse = {"time_axis": 0, "batch_axis": 1}
        ends = [tokens]
        if self.config.bidirectional:
            ends.append(self.add("ReverseSequence", tokens, "lengths", **reverse))
        layers = []
        for number in range(self.config.lstm.layers):
            outputs = [self.lstm(inputs, number, direction) for direction, inputs in enumerate(ends)]
            if self.config.lstm.skip and number > 0:
                outputs = [self.add("Add", output, inputs) for output, inputs in zip(outputs, ends, strict=True)]
            ends = outputs
            back = [self.add("ReverseSequence", output, "lengths", **reverse) for output in outputs[1:]]
            layers.append(self.add("Concat", outputs[0], *back, axis=2))
        return layers

    def lstm(self, inputs: str, number: int, direction: int) -> str:  # (T, B, P) -> (T, B, P)
        config, name = self.config.lstm, f"lstm.layers.{number}"
        own = {part: self.weights[f"{name}.{part}"][direction] for part in ("input", "recurrent", "bias")}
        bias = own["bias"].copy()
        bias[config.cells : 2 * config.cells] += np.float32(config.forget_bias)
        weight = self.constant(f"{name}.input.{direction}", own["input"].T)
        gates = self.add(  # (T, B, 4 * cells)
            "Add", self.add("MatMul", inputs, weight), self.constant(f"{name}.bias.{direction}", bias)
        )
        rows = self.add("Shape", "lengths")
        states = [
            self.add("ConstantOfShape", self.add("Concat", rows, self.integers(size), axis=0))
            for size in (config.dim, config.cells)
        ]
        recurrent = self.constant(f"{name}.recurrent.{direction}", own["recurrent"].T)
        projection = None
        if config.projection:
            matrix = self.weights[f"{name}.projection"][direction]
            projection = self.constant(f"{name}.projection.{direction}", matrix.T)
        step = self.lstm_step(f"{name}.{direction}", recurrent, projection)
        return self.add_all("Scan", *states, gates, outputs=3, body=step, num_scan_inputs=1)[2]

    def lstm_step(self, name: str, recurrent: str, projection: str | None) -> Any:
        """Return the graph of one step: hidden state (B, P), cell state (B, cells), W x + b -> new states, output."""
        config, info = self.config.lstm, self.helper.make_tensor_value_info
        outer, self.nodes = self.nodes, []
        prefix = f"{name}.step."
        hidden, cell, given = (prefix + value for value in ("hidden", "cell", "gates"))
        gates = self.add("Add", given, self.add("MatMul", hidden, recurrent))
        in_gate, forget_gate, candidate, out_gate = self.add_all("Split", gates, outputs=4, axis=-1)
        kept = self.add("Mul", self.add("Sigmoid", forget_gate), cell)
        new = self.add("Mul", self.add("Sigmoid", in_gate), self.add("Tanh", candidate))
        new_cell = self.clip(self.add("Add", kept, new), config.cell_clip)
        output = self.add("Mul", self.add("Sigmoid", out_gate), self.add("Tanh", new_cell))
        if projection is not None:
            output = self.clip(self.add("MatMul", output, projection), config.projection_clip)
        inputs = {hidden: config.dim, cell: config.cells, given: 4 * config.cells}
        outputs = {output: config.dim, new_cell: config.cells, self.add("Identity", output): config.dim}
        values = (
            [info(name, self.types.FLOAT, ["B", size]) for name, size in some.items()] for some in (inputs, outputs)
        )
        step = self.helper.make_graph(self.nodes, name, *values)
        self.nodes = outer
        return step

    def clip(self, values: str, limit: float | None) -> str:
        if limit is None:
            return values
        return self.add("Clip", values, self.constant(f"-{limit}", -limit), self.constant(f"+{limit}", limit))

    def mask_and_stack(self, layers: list[str]) -> None:
        """Add the output: the layers (L, B, T - 2, D) without boundary tokens, and 0 after the end of a sentence."""
        stacked = self.add("Concat", *(self.add("Unsqueeze", layer, self.integers(0)) for layer in layers), axis=0)
        inner = self.add("Slice", stacked, self.integers(1), self.integers(-1), self.integers(1))  # (L, T - 2, B, D)
        values = self.add("Transpose", inner, perm=[0, 2, 1, 3])
        words = self.add("Sub", "lengths", self.integers(2))
        time = self.add("Sub", self.add("Gather", self.add("Shape", "index"), self.integers(1)), self.integers(2))
        start, step = (self.constant(f"scalar_{value}", value, np.int64) for value in (0, 1))
        positions = self.add("Range", start, self.add("Squeeze", time), step)  # (T - 2,)
        mask = self.add("Less", positions, self.add("Unsqueeze", words, self.integers(1)))  # (B, T - 2)
        mask = self.add("Unsqueeze", mask, self.integers(-1))
        self.nodes.append(self.helper.make_node("Where", [mask, values, self.constant("zero", 0.0)], ["layers"]))


def _library(what: str) -> Any:
    try:
        import onnx
        import onnx.numpy_helper
    except ImportError:
        raise missing_extra("onnx", what) from None
    return onnx
