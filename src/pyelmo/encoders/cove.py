"""CoVe (McCann et al. 2017): the encoder of an English-German translation model, from its published weights.

    words --static vectors--> (T, 300) --biLSTM--> (T, 600) --biLSTM--> (T, 600) = CoVe

All layers of an encoder have the same size, so layer 0 holds the static vector twice, like the token layer of ELMo.
This changes neither cosines nor linear probes. A word without a vector is a zero vector, as in the training of CoVe.

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
from pyelmo.encoders.base import LoadedEncoder, batches_by_length
from pyelmo.encoders.static import read_vectors
from pyelmo.errors import FormatError
from pyelmo.formats.torch_file import load_state_dict, read_safetensors

BATCH = 32
# The published file has the parameter names of nn.LSTM; copies of the whole module add the prefix "rnn.".
_WEIGHT = re.compile(r"(?:rnn\.)?((?:weight|bias)_(?:ih|hh))_l([01])(_reverse)?")


def read(weights: Path, vectors_file: Path, device: str) -> LoadedEncoder:
    """Read the published weights and the static vectors below them (GloVe, 840 billion words)."""
    layers = [layer.to(device) for layer in read_layers(weights)]
    static_vectors = read_vectors(vectors_file)
    size = layers[0].input_size
    if static_vectors.dim != size:
        raise FormatError(
            f"{weights}: expects static vectors of size {size}, but {vectors_file} has vectors of size "
            f"{static_vectors.dim}. Use the vectors that CoVe was trained with."
        )

    def run(batch: list[list[str]]) -> list[Float32Array]:
        lengths = torch.tensor([max(len(sentence), 1) for sentence in batch])
        inputs = torch.zeros(len(batch), int(lengths.max()), size)
        for row, vectors in enumerate(static_vectors(batch)):
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

    def embed(sentences: Sequence[list[str]], /) -> Iterator[Float32Array]:
        for vectors in batches_by_length(sentences, BATCH, run):
            yield np.ascontiguousarray(vectors)  # a view would keep the whole batch in memory

    return LoadedEncoder(embed=embed, layers=("static", "LSTM 1", "LSTM 2"))


def read_layers(path: Path) -> list[nn.LSTM]:
    """Read the two LSTM layers from a torch state dict or a safetensors file."""
    weights: list[dict[str, Tensor]] = [{}, {}]
    for name, tensor in _tensors(path).items():
        match = _WEIGHT.fullmatch(name)
        if match is None:
            raise FormatError(f"{path}: {name!r} is not a weight of a two-layer biLSTM. Use the published CoVe file.")
        weights[int(match[2])][f"{match[1]}_l0{match[3] or ''}"] = tensor.float()
    layers = []
    for number, tensors in enumerate(weights):
        weight = tensors.get("weight_ih_l0")
        if weight is None or weight.ndim != 2 or weight.shape[0] % 4:
            raise FormatError(f"{path}: weight_ih_l{number} is missing, or its rows are not four gates")
        lstm = nn.LSTM(weight.shape[1], weight.shape[0] // 4, bidirectional=True, batch_first=True)
        try:
            lstm.load_state_dict(tensors)
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:200]
            raise FormatError(f"{path}: layer {number} is not a biLSTM ({reason})") from error
        layers.append(lstm.eval())
    if not layers[0].input_size == layers[0].hidden_size == layers[1].hidden_size == layers[1].input_size // 2:
        raise FormatError(
            f"{path}: expected LSTM layers whose cells in each direction equal the size of a static vector"
        )
    return layers


def _tensors(path: Path) -> dict[str, Tensor]:
    return read_safetensors(path) if path.suffix == ".safetensors" else load_state_dict(path)
