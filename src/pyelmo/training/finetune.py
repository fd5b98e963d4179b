"""Fine-tune a pretrained model on a corpus, with the perplexity before and after."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from pyelmo.config import to_dict
from pyelmo.corpus.corpus import Corpus
from pyelmo.errors import InputError
from pyelmo.files import check_output
from pyelmo.formats import native
from pyelmo.formats.pretrained import Pretrained
from pyelmo.model.bilm import BiLM
from pyelmo.training.evaluate import Perplexity, perplexity
from pyelmo.training.loop import TrainingResult, run, valid_documents
from pyelmo.training.processes import Processes
from pyelmo.training.recipe import TrainingConfig
from pyelmo.training.report import Say


@dataclass(frozen=True)
class FinetuneResult:
    """Perplexity on the held-out set before and after; a model without a softmax is measured after it got one."""

    before: Perplexity | None
    after: Perplexity | None
    result: TrainingResult


def finetune(
    model: Pretrained,
    corpus_folder: str | Path,
    output: str | Path,
    config: TrainingConfig,
    *,
    processes: Processes | None = None,
    say: Say | None = None,
    force: bool = False,
) -> FinetuneResult:
    """Train a model further on a prepared corpus; if it has no softmax, train one first with the rest frozen."""
    processes = processes or Processes()
    corpus, output = Corpus.open(corpus_folder), Path(output)
    model = replace(model, language=model.language or corpus.manifest.settings.language)
    settings = {"model": to_dict(model.bilm.config), "source": model.source, "training": to_dict(config)}
    if processes.first:
        check_output(output, force=True)
        output.mkdir(exist_ok=True)
    processes.wait()
    if model.bilm.softmax is None or model.lexicon.vocab is None:
        torch.manual_seed(config.seed)
        model = with_softmax(model, corpus)
        result = run(
            model, corpus, output / "softmax", config, {**settings, "part": "softmax"}, processes=processes, say=say,
            force=force, only_softmax=True,
        )  # fmt: skip
        if not result.finished:
            return FinetuneResult(None, None, result)
    documents = valid_documents(corpus)
    model.bilm.to(processes.device).eval()
    before = perplexity(model, documents, context="sentence", batch_size=256) if documents else None
    result = run(model, corpus, output / "all", config, settings, processes=processes, say=say, force=force)
    if result.finished and processes.first:
        native.write(model, output / "model", force=True)
    return FinetuneResult(before, result.valid, result)


def with_softmax(model: Pretrained, corpus: Corpus) -> Pretrained:
    """Return the model with a new softmax over the vocabulary of the corpus."""
    old = model.bilm
    if old.words is not None and model.lexicon.vocab is None:
        raise InputError(f"{model.source}: reads words, and its vocabulary is unknown. Give it (--vocab FILE).")
    vocab = model.lexicon.vocab if old.words is not None else None
    if vocab is None:
        vocab = corpus.vocabulary
    new = BiLM(replace(old.config, softmax=len(vocab), softmax_shares_words=False, softmax_cutoffs=()))
    new.load_state_dict(old.state_dict(), strict=False)
    return replace(model, model=new, lexicon=replace(model.lexicon, vocab=vocab))
