"""The perplexity of torch modules on any device, for training and for models on a GPU.

B rows, T time steps, N directions, P vector, U distinct words, M predictions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator

import torch

from pyelmo.embed.perplexity import RUN_TOKENS, Context, Document, Losses, Perplexity, document_batches
from pyelmo.embed.perplexity import perplexity as sum_up
from pyelmo.formats.pretrained import Pretrained, predicted_words
from pyelmo.model.bilm import pad_rows


def perplexity(
    model: Pretrained,
    documents: Iterable[Document],
    *,
    context: Context = "document",
    batch_size: int = 32,
    advance: Callable[[int], None] | None = None,
) -> Perplexity:
    """Return the perplexity of each direction over documents; the batch size does not change it."""
    vocab = predicted_words(model)
    compute = functools.partial(_losses, model, batch_size=batch_size)
    return sum_up(compute, vocab, documents, context=context, advance=advance)


def _losses(model: Pretrained, documents: list[Document], *, batch_size: int) -> Iterator[Losses]:
    """Yield the losses and targets (N, M) of documents, each from a zero state."""
    vocab, bilm = predicted_words(model), model.bilm
    assert bilm.softmax is not None
    device = next(bilm.parameters()).device
    words, batches = document_batches(documents, vocab, bilm.config.directions, batch_size)
    target_of = torch.from_numpy(vocab.encode(words)).long().to(device)
    ids = model.lexicon.encode(words)
    with torch.inference_mode():
        vectors = bilm.encode_words(
            None if ids.chars is None else torch.from_numpy(ids.chars).to(device),
            None if ids.words is None else torch.from_numpy(ids.words).to(device),
        )  # (U, P)
        for batch in batches:
            # With empty rows: the reason is at ROWS.
            inputs, targets = (pad_rows(torch.from_numpy(side), 1).to(device) for side in (batch.inputs, batch.targets))
            lengths = pad_rows(torch.from_numpy(batch.lengths)).to(device)
            state, width = None, inputs.shape[-1]
            steps = max(1, RUN_TOKENS // len(lengths))
            for step in range(0, width, steps):
                part = slice(step, step + steps)
                mask = torch.arange(width, device=device)[part] < lengths[:, None]
                tokens = torch.nn.functional.embedding(inputs[:, :, part], vectors)
                outputs, state = bilm.lstm(tokens, state, mask)
                predicted = target_of[targets[:, :, part][:, mask]]  # (N, M)
                predictions = outputs[-1][:, mask]
                losses = bilm.softmax.nll(predictions.flatten(0, 1).float(), predicted.flatten()).view(predicted.shape)
                yield losses.double().cpu().numpy(), predicted.cpu().numpy()
