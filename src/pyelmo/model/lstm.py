"""The LSTMs of the biLM, with a projection and clipping (section 3.4 of the paper; Sak et al. 2014).

    i, f, o = sigmoid(W x_t + U h_t-1 + b)       g = tanh(W_g x_t + U_g h_t-1 + b_g)
    c_t = clip(f c_t-1 + i g)                    h_t = clip(V (o tanh(c_t)))

N directions (each has its own weights, and all run together), B batch, T time, D input, C cells, P output.
Every direction reads its time axis forwards: the caller reverses the input of a backward LSTM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pyelmo.config import LstmConfig
from pyelmo.kernels import choice

# Steps whose products with the input are computed together. The gates are the largest array (4C floats for a token),
# so this bounds the memory for sentences of any length.
CHUNK = 16


@dataclass(frozen=True)
class State:
    """The recurrent state after a run, from which the next may start. Modules never store it: it is an argument."""

    hidden: Tensor  # (L, N, B, P)
    cell: Tensor  # (L, N, B, C)

    def detach(self) -> State:
        return State(self.hidden.detach(), self.cell.detach())


class ProjectedLSTM(nn.Module):
    """One layer, all directions. The gates are stacked in torch's order: i, f, g, o."""

    def __init__(self, inputs: int, config: LstmConfig, directions: int) -> None:
        super().__init__()
        self.config = config
        cells, size = config.cells, config.dim
        self.input = nn.Parameter(torch.empty(directions, 4 * cells, inputs))
        self.recurrent = nn.Parameter(torch.empty(directions, 4 * cells, size))
        self.bias = nn.Parameter(torch.empty(directions, 4 * cells))
        self.projection: nn.Parameter | None = None
        if config.projection is not None:
            self.projection = nn.Parameter(torch.empty(directions, size, cells))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        # Glorot's uniform bound of the joint matrix [W, U], and of the projection.
        cells, inputs, size = self.config.cells, self.input.shape[-1], self.config.dim
        bound = (6 / (inputs + size + 4 * cells)) ** 0.5
        nn.init.uniform_(self.input, -bound, bound)
        nn.init.uniform_(self.recurrent, -bound, bound)
        nn.init.zeros_(self.bias)
        if self.projection is not None:
            bound = (6 / (cells + size)) ** 0.5
            nn.init.uniform_(self.projection, -bound, bound)

    def forward(
        self,
        inputs: Tensor,
        hidden: Tensor,
        cell: Tensor,
        mask: Tensor | None = None,
        counts: Sequence[int] | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(N, B, T, D), (N, B, P), (N, B, C), (B, T) -> outputs (N, B, T, P), last hidden state and last cell state.

        Where `mask` is false, the state does not change and the output is undefined. `counts` may have, for each step,
        the number of leading rows after which all rows are masked: the GPU kernels then skip those.
        """
        cells = self.config.cells
        forget = torch.zeros_like(self.bias[0])
        forget[cells : 2 * cells] = self.config.forget_bias
        run = choice.fast(projected_lstm, inputs)
        return run(
            inputs, hidden, cell, mask,
            self.input, self.recurrent, self.bias + forget, self.projection,
            self.config.cell_clip, self.config.projection_clip, counts,
        )  # fmt: skip


def projected_lstm(
    inputs: Tensor,
    hidden: Tensor,
    cell: Tensor,
    mask: Tensor | None,
    weight_input: Tensor,
    weight_recurrent: Tensor,
    bias: Tensor,
    weight_projection: Tensor | None,
    cell_clip: float | None,
    projection_clip: float | None,
    counts: Sequence[int] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the equations step by step; ignores `counts`. This is the plain reference of the GPU kernels."""
    recurrent = weight_recurrent.transpose(1, 2)  # (N, P, 4C)
    projection = None if weight_projection is None else weight_projection.transpose(1, 2)  # (N, C, P)
    directions, batch, time, size = inputs.shape
    outputs: list[Tensor] = []
    for step in range(time):
        if step % CHUNK == 0:
            # W x + b has no recurrence: one product for many steps.
            steps = min(CHUNK, time - step)
            chunk = inputs[:, :, step : step + steps].reshape(directions, batch * steps, size)
            gates_in = torch.baddbmm(bias.unsqueeze(1), chunk, weight_input.transpose(1, 2))
            gates_in = gates_in.view(directions, batch, steps, bias.shape[-1])  # (N, B, CHUNK, 4C)
        gates = torch.baddbmm(gates_in[:, :, step % CHUNK], hidden, recurrent)  # (N, B, 4C)
        in_gate, forget_gate, candidate, out_gate = gates.chunk(4, -1)
        new_cell = torch.sigmoid(forget_gate) * cell + torch.sigmoid(in_gate) * torch.tanh(candidate)
        if cell_clip is not None:
            new_cell = new_cell.clamp(-cell_clip, cell_clip)
        new_hidden = torch.sigmoid(out_gate) * torch.tanh(new_cell)
        if projection is not None:
            new_hidden = torch.bmm(new_hidden, projection)
            if projection_clip is not None:
                new_hidden = new_hidden.clamp(-projection_clip, projection_clip)
        outputs.append(new_hidden)
        if mask is None:
            hidden, cell = new_hidden, new_cell
        else:
            is_token = mask[:, step, None]
            hidden, cell = torch.where(is_token, new_hidden, hidden), torch.where(is_token, new_cell, cell)
    stacked = torch.stack(outputs, 2) if outputs else inputs.new_zeros(directions, batch, 0, hidden.shape[-1])
    return stacked, hidden, cell


class LstmStack(nn.Module):
    """The layers of the biLM; from the second on, a layer's input is added to its output (skip connection)."""

    def __init__(self, config: LstmConfig, directions: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        self.directions = directions
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(ProjectedLSTM(config.dim, config, directions) for _ in range(config.layers))

    def zero_state(self, batch: int) -> State:
        weight = next(self.parameters())
        shape = (self.config.layers, self.directions, batch)
        return State(weight.new_zeros(*shape, self.config.dim), weight.new_zeros(*shape, self.config.cells))

    def forward(
        self,
        inputs: Tensor,
        state: State | None = None,
        mask: Tensor | None = None,
        counts: Sequence[int] | None = None,
    ) -> tuple[list[Tensor], State]:
        """(N, B, T, P) -> the output of each layer, L times (N, B, T, P), and the state after the last step."""
        state = state or self.zero_state(inputs.shape[1])
        outputs, hiddens, cells = [], [], []
        for number, layer in enumerate(self.layers):
            # As in bilm-tf: dropout on each layer's input (also in the skip connection) and on the last output.
            inputs = self.dropout(inputs)
            output, hidden, cell = layer(inputs, state.hidden[number], state.cell[number], mask, counts)
            if self.config.skip and number > 0:
                output = output + inputs
            inputs = output
            outputs.append(output)
            hiddens.append(hidden)
            cells.append(cell)
        outputs[-1] = self.dropout(outputs[-1])
        return outputs, State(torch.stack(hiddens), torch.stack(cells))
