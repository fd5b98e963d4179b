"""Fine-tune a pretrained model on a corpus, with the perplexity before and after."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from pyelmo.config import to_dict
from pyelmo.corpus.corpus import Corpus
from pyelmo.embed.engines.torch_perplexity import perplexity
from pyelmo.embed.perplexity import Perplexity
from pyelmo.errors import InputError, OutputError
from pyelmo.files import check_output, entries, remove_leftovers
from pyelmo.formats.pretrained import Pretrained
from pyelmo.model.bilm import BiLM
from pyelmo.model.softmax import Softmax
from pyelmo.training.loop import run, valid_documents, words_of
from pyelmo.training.processes import Processes
from pyelmo.training.recipe import TrainingConfig
from pyelmo.training.report import Say, counter

MODEL = "model"
PARTS = {"softmax", "all", MODEL}  # what the folder of a run contains: the two trainings, and the model


@dataclass(frozen=True)
class FinetuneResult:
    """Perplexity on the held-out set before and after; a model without a softmax is measured after it got one."""

    before: Perplexity | None  # None: the corpus has no held-out set
    after: Perplexity | None
    model: Path  # the folder of the tuned model


def finetune(
    model: Pretrained,
    corpus_folder: str | Path,
    output: str | Path,
    config: TrainingConfig,
    *,
    add_words: bool = False,
    processes: Processes | None = None,
    say: Say | None = None,
    force: bool = False,
) -> FinetuneResult:
    """Train a model further on a prepared corpus; if it has no softmax, train one first with the rest frozen.

    With `add_words` the model also learns to predict the words of the corpus's vocabulary that it could not predict.
    """
    processes = processes or Processes()
    corpus, output = Corpus.open(corpus_folder), Path(output)
    # The common direction of its sentence form is no longer that of the trained weights.
    model = replace(model, language=model.language or corpus.manifest.settings.language, sentence=None)
    if add_words and model.bilm.softmax is not None and model.lexicon.vocab is not None:
        model = with_words(model, corpus)
    settings = {"model": to_dict(model.bilm.config), "source": model.source, "training": to_dict(config)}
    if processes.first:
        check_output(output, force=True)
        remove_leftovers(output / MODEL)
        if output.is_file() or (output.is_dir() and {path.name for path in entries(output)} - PARTS):
            raise OutputError(f"{output}: exists and is not a run of elmo finetune. Choose another folder.")
        output.mkdir(exist_ok=True)
        if force:
            shutil.rmtree(output / MODEL, ignore_errors=True)
    processes.wait()
    if model.bilm.softmax is None or model.lexicon.vocab is None:
        torch.manual_seed(config.seed)
        model = with_softmax(model, corpus)
        run(
            model, corpus, output / "softmax", config, {**settings, "part": "softmax"}, model_folder=None,
            processes=processes, say=say, force=force, only_softmax=True,
        )  # fmt: skip
    documents = valid_documents(corpus)
    model.bilm.to(processes.device).eval()
    before = None
    if documents:
        advance = counter(say if processes.first else None, "held-out perplexity", words_of(documents))
        before = perplexity(model, documents, context="sentence", batch_size=256, advance=advance)
    result = run(
        model, corpus, output / "all", config, settings, model_folder=output / MODEL, processes=processes, say=say,
        force=force,
    )  # fmt: skip
    return FinetuneResult(before, result.valid, output / MODEL)


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


def with_words(model: Pretrained, corpus: Corpus) -> Pretrained:
    """Return the model with a softmax that also has the words of the corpus's vocabulary which it lacks.

    Each new word starts with a part of the probability of <UNK>: its share of the model's out-of-vocabulary words in
    the corpus. So no other word's probability changes.
    """
    softmax, vocab = model.bilm.softmax, model.lexicon.vocab
    assert vocab is not None
    if model.bilm.words is not None or not isinstance(softmax, Softmax):
        reason = "reads words" if model.bilm.words is not None else "has an adaptive softmax"
        raise InputError(f"{model.source}: {reason}, so no words can be added to its softmax. Leave out --add-words.")
    counts = dict(zip(corpus.types[3:], corpus.counts[3:].tolist(), strict=True))  # without the special tokens
    lacking = {word: count for word, count in counts.items() if word not in vocab}
    new = [word for word in corpus.vocabulary.words[3:] if word in lacking]
    # At least one word is left to <UNK>: other text has out-of-vocabulary words even if this one has none.
    left = max(1, sum(lacking.values()) - sum(lacking[word] for word in new))
    shares = torch.tensor([left, *(lacking[word] for word in new)], dtype=torch.float64)
    shares = (shares / shares.sum()).log().to(softmax.bias)
    larger = BiLM(replace(model.bilm.config, softmax=len(vocab) + len(new)))
    assert isinstance(larger.softmax, Softmax)
    weights, unknown = model.bilm.state_dict(), vocab.ids[vocab.unknown]
    row, bias = weights["softmax.weight"][unknown], weights["softmax.bias"][unknown]
    weights["softmax.weight"] = torch.cat([weights["softmax.weight"], row.expand(len(new), -1)])
    weights["softmax.bias"] = torch.cat([weights["softmax.bias"], bias + shares[1:]])
    weights["softmax.bias"][unknown] = bias + shares[0]
    larger.load_state_dict(weights)
    words = replace(vocab, words=(*vocab.words, *new))
    return replace(model, model=larger, lexicon=replace(model.lexicon, vocab=words))
