"""Projected LSTM with clipping: the recurrent half of the biLM.

N directions (each with weights of its own, run side by side), B batch, T time, D input, C cells, P output.
Every direction reads its own time axis forwards; who wants a backward LSTM reverses its input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pyelmo import kernels
from pyelmo.config import LstmConfig

# Steps whose input products are computed at once. The gates are the largest array of a run (4C floats a token), so this
# bounds its memory whatever the length of a sentence.
CHUNK = 16


@dataclass(frozen=True)
class State:
    """What a run leaves behind and the next may start from: an argument and a result, never kept in a module."""

    hidden: Tensor  # (L, N, B, P)
    cell: Tensor  # (L, N, B, C)

    def detach(self) -> State:
        return State(self.hidden.detach(), self.cell.detach())


class ProjectedLSTM(nn.Module):
    """One layer, all directions. Gates are stacked in torch's order: input, forget, candidate, output."""

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
        # Glorot's uniform bound for the joint matrix [input; recurrent], and for the projection.
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
        """(N, B, T, D), (N, B, P), (N, B, C), (B, T) -> outputs (N, B, T, P) and the last hidden and cell.

        Where `mask` is false the state stands still and the output is undefined. `counts` may say, for each step, how
        many of the first rows hold all that the mask leaves: a fast path then skips the others.
        """
        cells = self.config.cells
        forget = torch.zeros_like(self.bias[0])
        forget[cells : 2 * cells] = self.config.forget_bias
        run = kernels.fast(projected_lstm, inputs)
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
    """The plain reference: one step after another, as the equations say, for every row whatever `counts` says."""
    recurrent = weight_recurrent.transpose(1, 2)  # (N, P, 4C)
    projection = None if weight_projection is None else weight_projection.transpose(1, 2)  # (N, C, P)
    directions, batch, time, size = inputs.shape
    outputs: list[Tensor] = []
    for step in range(time):
        if step % CHUNK == 0:
            # The input's share of the gates has no recurrence: one product for many steps.
            steps = min(CHUNK, time - step)
            part = inputs[:, :, step : step + steps].reshape(directions, batch * steps, size)
            gates_in = torch.baddbmm(bias.unsqueeze(1), part, weight_input.transpose(1, 2))
            gates_in = gates_in.view(directions, batch, steps, bias.shape[-1])  # (N, B, CHUNK, 4C)
        gates = torch.baddbmm(gates_in[:, :, step % CHUNK], hidden, recurrent)  # (N, B, 4C)
        enter, forget, candidate, leave = gates.chunk(4, -1)
        new_cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(candidate)
        if cell_clip is not None:
            new_cell = new_cell.clamp(-cell_clip, cell_clip)
        new_hidden = torch.sigmoid(leave) * torch.tanh(new_cell)
        if projection is not None:
            new_hidden = torch.bmm(new_hidden, projection)
            if projection_clip is not None:
                new_hidden = new_hidden.clamp(-projection_clip, projection_clip)
        outputs.append(new_hidden)
        if mask is None:
            hidden, cell = new_hidden, new_cell
        else:
            live = mask[:, step, None]
            hidden, cell = torch.where(live, new_hidden, hidden), torch.where(live, new_cell, cell)
    stacked = torch.stack(outputs, 2) if outputs else inputs.new_zeros(directions, batch, 0, hidden.shape[-1])
    return stacked, hidden, cell


class LstmStack(nn.Module):
    """Layers on top of each other; from the second on, a layer's input is added to its output."""

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
        """(N, B, T, P) -> the output of each layer (N, B, T, P), and the state after the last step."""
        state = state or self.zero_state(inputs.shape[1])
        outputs, hiddens, cells = [], [], []
        for number, layer in enumerate(self.layers):
            # bilm-tf drops a cell's input (and the residual adds the dropped input), and the stack's output.
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
