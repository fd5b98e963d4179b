"""The training loop: batches until the budget is used up, validation, checkpoints, and a clean stop after a signal.

`pretrain` trains a new model, `finetune.py` an old one; both call `run`, which resumes from the last checkpoint. After
SIGINT or SIGTERM, `run` saves a checkpoint and sends the signal again, so that it has its usual effect.
"""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pyelmo.config import ModelConfig, to_dict
from pyelmo.corpus.corpus import Corpus
from pyelmo.embed.engines.torch_perplexity import perplexity
from pyelmo.embed.perplexity import Document, Perplexity
from pyelmo.errors import ConfigError, DivergedError, FormatError, InputError, OutputError
from pyelmo.files import entries, locked, write_text
from pyelmo.formats import native
from pyelmo.formats.pretrained import Pretrained
from pyelmo.model.bilm import BiLM
from pyelmo.parallel import StopRequest, stop_requests
from pyelmo.parsing import read_json
from pyelmo.text.characters import JAMO_SYMBOLS, Alphabet, Bytes, Jamo
from pyelmo.text.lexicon import Lexicon
from pyelmo.training import checkpoint
from pyelmo.training.feed import Feed, open_stream, type_tables
from pyelmo.training.graphs import Step, stepper
from pyelmo.training.processes import Processes
from pyelmo.training.recipe import PretrainRecipe, TrainingConfig
from pyelmo.training.report import Report, Say, counter
from pyelmo.training.trainer import Trainer

VALID_WORDS = 300_000  # words of the held-out set that a run uses; elmo evaluate uses any number
RISE = 1.5  # a loss above this many times the lowest one, plus one, means that the run has diverged
REPORT_SECONDS = 10.0  # between two reports, if a run is so slow that `report_every` steps take longer
STOP_EVERY = 10  # steps after which several processes share whether a signal came, which costs waiting time


@dataclass(frozen=True)
class TrainingResult:
    """The end of a run; `valid` is the perplexity on the held-out set, if the corpus has one."""

    step: int
    words: int
    valid: Perplexity | None


def pretrain(
    corpus_folder: str | Path,
    output: str | Path,
    recipe: PretrainRecipe,
    *,
    processes: Processes | None = None,
    say: Say | None = None,
    tensorboard: bool = False,
    force: bool = False,
) -> TrainingResult:
    """Train a new biLM on a prepared corpus; the same call again resumes a run that was stopped or killed."""
    corpus = Corpus.open(corpus_folder)
    model = new_model(recipe.model, corpus, recipe.training.seed)
    settings = {"model": to_dict(model.bilm.config), "training": to_dict(recipe.training)}
    return run(
        model, corpus, Path(output), recipe.training, settings, model_folder=Path(output) / "model",
        processes=processes or Processes(), say=say, tensorboard=tensorboard, force=force,
    )  # fmt: skip


def new_model(config: ModelConfig, corpus: Corpus, seed: int) -> Pretrained:
    """Return a biLM with random weights for the vocabulary and language of a corpus."""
    torch.manual_seed(seed)
    chars, words = config.chars, config.words
    alphabet: Alphabet | None = None
    if chars is not None:
        if chars.alphabet == "dictionary":
            raise InputError("model.chars.alphabet: a new model needs 'bytes' or 'jamo', got 'dictionary'")
        alphabet = (Jamo if chars.alphabet == "jamo" else Bytes)(chars.max_length)
        chars = replace(chars, symbols=JAMO_SYMBOLS if chars.alphabet == "jamo" else Bytes().size)
    if words is not None:
        words = replace(words, size=corpus.vocab_size)
    config = replace(config, chars=chars, words=words, softmax=corpus.vocab_size)
    lexicon = Lexicon(alphabet, corpus.vocabulary, reads_words=words is not None)
    return Pretrained(BiLM(config), lexicon, "pyelmo", str(corpus.folder), corpus.manifest.settings.language)


def run(
    model: Pretrained,
    corpus: Corpus,
    output: Path,
    config: TrainingConfig,
    settings: dict[str, Any],
    *,
    model_folder: Path | None,
    processes: Processes,
    say: Say | None = None,
    tensorboard: bool = False,
    force: bool = False,
    only_softmax: bool = False,
) -> TrainingResult:
    """Train a model on a corpus, with the files of the run in the folder `output`, and write it to `model_folder`."""
    settings = {**settings, "corpus": corpus.identity}
    if processes.count > 1 and config.minutes is not None:
        raise ConfigError(
            "training.minutes: several processes have no common clock; set words or epochs as the budget instead"
        )
    with _opened(output, settings, processes, force=force):
        report = Report(output, say, tensorboard=tensorboard, active=processes.first)
        corpus.verify()
        model.bilm.to(processes.device)
        tables = type_tables(corpus, model.bilm, model.lexicon, processes)
        trainer = Trainer(model.bilm, tables, config, processes, only_softmax=only_softmax)
        stream = open_stream(corpus, config, processes)
        start = checkpoint.RunPosition(0, 0, 0.0, stream.state(), settings)
        last_checkpoint = checkpoint.latest(output)
        if last_checkpoint is not None:
            start = checkpoint.read_position(last_checkpoint)
            checkpoint.restore(last_checkpoint, trainer, start.step)
            stream.restore(start.streams)
            report.note(f"resuming from step {start.step:,}", step=start.step)
        valid = valid_documents(corpus)
        steps = stepper(trainer)
        feed = Feed(stream, model.bilm.config.directions, processes.device, steps.prepare)
        try:
            with stop_requests() as request:
                own = _Run(model, trainer, steps.step, output, report, valid, settings, corpus.manifest.train)
                own.model_folder = model_folder
                return own.run(feed, start, request)
        finally:
            feed.close()


@contextlib.contextmanager
def _opened(output: Path, settings: dict[str, Any], processes: Processes, *, force: bool) -> Iterator[None]:
    """Create or check the folder of a run and lock it; only the first process does so."""
    with contextlib.ExitStack() as stack:
        if processes.first:
            if output.is_file():
                raise OutputError(f"{output}: exists and is not a training run. Choose another folder.")
            try:
                output.mkdir(exist_ok=True)
            except OSError as error:
                raise OutputError(f"{output}: cannot be made: {error.strerror}") from error
            stack.enter_context(locked(output))
            _open_folder(output, settings, force=force)
        processes.wait()
        yield


def _open_folder(output: Path, settings: dict[str, Any], *, force: bool) -> None:
    """Check that a folder is new or has a run with these settings; with `force`, delete its old run."""
    recipe = output / "recipe.json"
    has_checkpoint = checkpoint.latest(output) is not None
    if recipe.is_file() and (force or not has_checkpoint):  # without a checkpoint there is nothing to lose
        for path in (*output.glob(checkpoint.PATTERN), output / "log.jsonl"):
            path.unlink(missing_ok=True)
        shutil.rmtree(output / "model", ignore_errors=True)
    elif recipe.is_file():
        _check_same_run(output, recipe, settings)
    elif entries(output):
        raise OutputError(f"{output}: exists and is not a training run. Choose another folder.")
    for unfinished in output.glob(".*.part"):  # left by a killed run
        shutil.rmtree(unfinished, ignore_errors=True)
    write_text(recipe, json.dumps(settings, indent=1) + "\n")


def _check_same_run(output: Path, recipe: Path, settings: dict[str, Any]) -> None:
    """Raise an error if a folder has a run with other settings, or on another corpus."""
    try:
        old = read_json(recipe)
    except FormatError as error:
        raise FormatError(f"{recipe}: cannot be read ({error}). Pass --force to restart the run.") from error
    old.setdefault("corpus", settings["corpus"])  # runs of earlier versions did not store it
    changed = [name for name in {**old, **settings} if old.get(name) != settings.get(name)]
    if changed:
        what = "on another corpus" if changed == ["corpus"] else f"with other settings ({', '.join(changed)})"
        raise OutputError(f"{output}: has a run {what}. Choose another folder, or pass --force to restart.")


def valid_documents(corpus: Corpus) -> list[Document]:
    """Return the first held-out sentences, each as a document, because a corpus does not store document boundaries."""
    types = corpus.types
    documents: list[Document] = []
    words = 0
    for ids in corpus.sentences("valid"):
        documents.append([[types[number] for number in ids.tolist()]])
        words += len(ids)
        if words >= VALID_WORDS:
            break
    return documents


def words_of(documents: list[Document]) -> int:
    """Return the number of predictions, with the end of each sentence."""
    return sum(len(sentence) + 1 for document in documents for sentence in document)


class _Run:
    """The objects of a run, and the loop."""

    def __init__(
        self, model: Pretrained, trainer: Trainer, step: Step, output: Path, report: Report, valid: list[Document],
        settings: dict[str, Any], counts: Any,
    ) -> None:  # fmt: skip
        self.model, self.trainer, self.step, self.output, self.report = model, trainer, step, output, report
        self.valid, self.settings = valid, settings
        self.config, self.processes = trainer.config, trainer.processes
        self.epoch_words = counts.words + counts.sentences  # one end token for each sentence
        self.lowest = math.inf  # the lowest loss that was reported
        self.model_folder: Path | None = None

    def run(self, feed: Feed, start: checkpoint.RunPosition, request: StopRequest) -> TrainingResult:
        """Train until the budget is used up or a stop is requested."""
        step, words, position = start.step, start.words, start
        began, reported = time.monotonic() - start.seconds, (time.monotonic(), start.words)
        if self._progress(words, start.seconds) >= 1:
            return self._finish(position)
        for batch, streams in feed:
            progress = self._progress(words, time.monotonic() - began)
            means = self.step(batch, self._lr(step, progress))
            step, words = step + 1, words + self.config.batch * self.config.steps
            seconds = time.monotonic() - began
            done = self._progress(words, seconds) >= 1
            position = checkpoint.RunPosition(step, words, seconds, streams, self.settings)
            check_stop = step % STOP_EVERY == 0 or self.processes.count == 1
            ending = done or (check_stop and self.processes.any(request.signal is not None))
            regular = step % self.config.report_every == 0 or ending
            if regular:
                self._check(means, step)
            now = time.monotonic()
            if regular or now - reported[0] > REPORT_SECONDS:
                rate = (words - reported[1]) / max(1e-9, now - reported[0])
                self.report.step(
                    step=step, words=words, losses=means.tolist(), norm=float(self.trainer.norm),
                    lr=self._lr(step, progress), rate=rate, left=self._seconds_left(words, seconds, rate),
                )  # fmt: skip
                reported = (now, words)
            if ending or step % self.config.checkpoint_every == 0:
                self._check(means, step)
                checkpoint.save(self.output, self.trainer, position)
            if done:
                return self._finish(position)
            if ending:
                self.report.note(f"stopped at step {step:,}; run the same command again to resume", step=step)
                request.obey()
            if step % self.config.validate_every == 0:
                self._validate(position)
                reported = (time.monotonic(), words)  # the rate does not include the time of validation
        raise AssertionError("the stream of batches ended")

    def _progress(self, words: int, seconds: float) -> float:
        """Return the fraction of the budget that is used up."""
        if self.config.minutes is not None:
            return seconds / (60 * self.config.minutes)
        return words / self._total_words()

    def _total_words(self) -> float:
        """Return the budget in words, without the last words of an epoch, which do not fill a batch and are skipped."""
        total = self.config.words if self.config.words is not None else (self.config.epochs or 0) * self.epoch_words
        size = self.config.batch * self.config.steps
        return max(size, total // size * size)  # whole batches, at least one

    def _seconds_left(self, words: int, seconds: float, rate: float) -> float:
        """Return how long the rest takes at the present rate: that of a resumed run may be another than before."""
        if self.config.minutes is not None:
            return max(0.0, 60 * self.config.minutes - seconds)
        return max(0.0, (self._total_words() - words) / max(rate, 1e-9))

    def _lr(self, step: int, progress: float) -> float:
        """Return the learning rate after warm-up and decay."""
        lr = self.config.lr * min(1.0, (step + 1) / self.config.warmup if self.config.warmup else 1.0)
        if self.config.decay == "linear":
            lr *= max(0.0, 1 - progress)
        elif self.config.decay == "cosine":
            lr *= 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
        return lr

    def _check(self, means: Tensor, step: int) -> None:
        """Stop a run that has diverged: the loss is NaN or infinite, or has risen far above the lowest one."""
        bad_step, loss = int(self.trainer.bad_step), float(means.mean())
        self.lowest = min(self.lowest, loss)
        if bad_step:
            problem = f"the loss is NaN or infinite since step {bad_step:,}"
        elif loss > RISE * self.lowest + 1:
            problem = f"the loss rose from {self.lowest:.2f} to {loss:.2f} by step {step:,}"
        else:
            return
        path = checkpoint.latest(self.output)
        last = f"the last good checkpoint is {path.name}" if path else "no checkpoint had been written"
        raise DivergedError(
            f"{self.output}: {problem}; stopped, {last}. Try a lower training.lr or training.clip_norm."
        )

    def _validate(self, position: checkpoint.RunPosition) -> Perplexity | None:
        if not self.valid:
            return None
        self.model.bilm.eval()
        advance = counter(self.report.say if self.report.active else None, "held-out perplexity", words_of(self.valid))
        result = perplexity(self.model, self.valid, context="sentence", batch_size=256, advance=advance)
        self.report.validation(
            step=position.step, words=position.words, forward=result.forward, backward=result.backward,
            average=result.average,
        )  # fmt: skip
        return result

    def _finish(self, position: checkpoint.RunPosition) -> TrainingResult:
        valid = self._validate(position)
        self.model.bilm.eval()
        if self.processes.first and self.model_folder is not None:
            native.write(self.model, self.model_folder, force=True)
            self.report.note(f"finished: {self.model_folder}", step=position.step)
        self.processes.wait()
        return TrainingResult(position.step, position.words, valid)
