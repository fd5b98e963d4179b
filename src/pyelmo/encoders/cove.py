"""CoVe (McCann et al. 2017): the encoder of an English-German translator, read from its published weights.

    words --static vectors--> (T, 300) --biLSTM--> (T, 600) --biLSTM--> (T, 600) = CoVe

An encoder's layers have one size, so layer 0 is the static vector twice, as ELMo's token layer is: cosines and linear
probes see the same in it as in one. A word without a vector is zeros, as CoVe was trained.

B batch, T time, D size of a static vector.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pyelmo.arrays import Float32Array
from pyelmo.encoders.base import Loaded, by_length
from pyelmo.encoders.static import read_vectors
from pyelmo.errors import FormatError
from pyelmo.formats.many_langs import load_state_dict

BATCH = 32
# The published file names torch's own parameters; copies of the whole module write "rnn." before them.
_WEIGHT = re.compile(r"(?:rnn\.)?((?:weight|bias)_(?:ih|hh))_l([01])(_reverse)?")


def read(weights: Path, vectors_file: Path, device: str) -> Loaded:
    """The encoder of the published weights and a file of static vectors, GloVe's of 840 billion words."""
    layers = [layer.to(device) for layer in read_layers(weights)]
    words = read_vectors(vectors_file)
    size = layers[0].input_size
    if words.dim != size:
        raise FormatError(f"{weights}: reads vectors of {size} numbers, and those given have {words.dim}")

    def run(batch: list[list[str]]) -> list[Float32Array]:
        lengths = torch.tensor([max(len(sentence), 1) for sentence in batch])
        inputs = torch.zeros(len(batch), int(lengths.max()), size)
        for row, vectors in enumerate(words(batch)):
            inputs[row, : vectors.shape[1]] = torch.from_numpy(vectors[0])
        outputs = [torch.cat([inputs, inputs], 2)]
        hidden = inputs.to(device)
        with torch.inference_mode():
            for layer in layers:
                packed = pack_padded_sequence(hidden, lengths, batch_first=True, enforce_sorted=False)
                hidden, _ = pad_packed_sequence(layer(packed)[0], batch_first=True)
                outputs.append(hidden.cpu())
        stacked: Float32Array = torch.stack(outputs).numpy()  # (3, B, T, 2D)
        return [stacked[:, row, : len(sentence)] for row, sentence in enumerate(batch)]

    def embed(sentences: Sequence[list[str]]) -> Iterator[Float32Array]:
        for vectors in by_length(sentences, BATCH, run):
            yield np.ascontiguousarray(vectors)  # not a view that keeps the whole batch

    return Loaded(embed=embed, layers=("static", "LSTM 1", "LSTM 2"))


def read_layers(path: Path) -> list[nn.LSTM]:
    """The two layers from a torch state dict or safetensors."""
    found: list[dict[str, Tensor]] = [{}, {}]
    for name, tensor in _tensors(path).items():
        match = _WEIGHT.fullmatch(name)
        if match is None:
            raise FormatError(f"{path}: {name!r} is no weight of a two-layer biLSTM. Is this CoVe's file?")
        found[int(match[2])][f"{match[1]}_l0{match[3] or ''}"] = tensor.float()
    layers = []
    for number, tensors in enumerate(found):
        weight = tensors.get("weight_ih_l0")
        if weight is None or weight.ndim != 2 or weight.shape[0] % 4:
            raise FormatError(f"{path}: weight_ih_l{number} is missing or has no rows for four gates")
        lstm = nn.LSTM(weight.shape[1], weight.shape[0] // 4, bidirectional=True, batch_first=True)
        try:
            lstm.load_state_dict(tensors)
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:200]
            raise FormatError(f"{path}: layer {number} is not a biLSTM ({reason})") from error
        layers.append(lstm.eval())
    if not layers[0].input_size == layers[0].hidden_size == layers[1].hidden_size == layers[1].input_size // 2:
        raise FormatError(f"{path}: expected layers of as many cells each way as a static vector has numbers")
    return layers


def _tensors(path: Path) -> dict[str, Tensor]:
    if path.suffix != ".safetensors":
        return load_state_dict(path)
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise FormatError(f"{path}: not a whole safetensors file ({error})") from error
