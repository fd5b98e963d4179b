"""The run: batches until the budget is spent, validation, checkpoints, a clean stop on a signal."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pyelmo.config import ModelConfig, to_dict
from pyelmo.errors import ConfigError, DivergedError, InputError, OutputError
from pyelmo.files import locked, write_text
from pyelmo.formats import native
from pyelmo.formats.pretrained import Pretrained
from pyelmo.model.bilm import BiLM
from pyelmo.text.characters import JAMO_SYMBOLS, Alphabet, Bytes, Jamo
from pyelmo.text.corpus import Corpus
from pyelmo.text.lexicon import Lexicon
from pyelmo.training import checkpoint
from pyelmo.training.evaluate import Document, Perplexity, perplexity
from pyelmo.training.feed import Feed, open_stream, type_tables
from pyelmo.training.graphs import Step, stepper
from pyelmo.training.processes import Processes
from pyelmo.training.recipe import Recipe, TrainingConfig
from pyelmo.training.report import Report, Say
from pyelmo.training.trainer import Trainer

VALID_WORDS = 300_000  # held-out words that a run validates on; elmo evaluate takes any amount
RISE = 1.5  # a loss this many times the lowest, and one more, will not come down again
STOP_EVERY = 10  # steps after which several processes ask each other whether a signal came: asking makes them wait


@dataclass(frozen=True)
class Result:
    """How a run ended: `finished` is false when a signal stopped it."""

    finished: bool
    step: int
    words: int
    valid: Perplexity | None


def pretrain(
    corpus_folder: str | Path,
    output: str | Path,
    recipe: Recipe,
    *,
    processes: Processes | None = None,
    say: Say | None = None,
    tensorboard: bool = False,
    force: bool = False,
) -> Result:
    """Train a biLM on a prepared corpus. The same call again goes on where a stopped or killed run was."""
    corpus = Corpus.open(corpus_folder)
    model = new_model(recipe.model, corpus, recipe.training.seed)
    settings = {"model": to_dict(model.bilm.config), "training": to_dict(recipe.training)}
    return run(
        model, corpus, Path(output), recipe.training, settings, processes=processes or Processes(), say=say,
        tensorboard=tensorboard, force=force,
    )  # fmt: skip


def new_model(config: ModelConfig, corpus: Corpus, seed: int) -> Pretrained:
    """A biLM with random weights for a corpus: its vocabulary and language, and the recipe's alphabet."""
    torch.manual_seed(seed)
    chars, words = config.chars, config.words
    alphabet: Alphabet | None = None
    if chars is not None:
        if chars.alphabet == "dictionary":
            raise InputError("model.chars.alphabet: a new model reads bytes or jamo; dictionaries come with old models")
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
    processes: Processes,
    say: Say | None = None,
    tensorboard: bool = False,
    force: bool = False,
    only_softmax: bool = False,
) -> Result:
    """Train any model on a corpus in a folder of its own."""
    if processes.count > 1 and config.minutes is not None:
        raise ConfigError("training.minutes: several processes keep no common time; give words or epochs as the budget")
    with _opened(output, settings, processes, force=force):
        report = Report(output, say, tensorboard=tensorboard, active=processes.first)
        corpus.verify()
        model.bilm.to(processes.device)
        tables = type_tables(corpus, model.bilm, model.lexicon, processes)
        trainer = Trainer(model.bilm, tables, config, processes, only_softmax=only_softmax)
        stream = open_stream(corpus, config, processes)
        start = checkpoint.Position(0, 0, 0.0, stream.state(), settings)
        found = checkpoint.latest(output)
        if found is not None:
            start = checkpoint.read_position(found)
            checkpoint.restore(found, trainer, start.step)
            stream.restore(start.streams)
            report.note(f"going on from step {start.step:,}", step=start.step)
        valid = valid_documents(corpus)
        steps = stepper(trainer)
        feed = Feed(stream, model.bilm.config.directions, processes.device, steps.prepare)
        try:
            with _signals() as stopped:
                return _Run(model, trainer, steps.step, output, report, valid, settings, corpus.manifest.train).run(
                    feed, start, stopped
                )
        finally:
            feed.close()


@contextlib.contextmanager
def _opened(output: Path, settings: dict[str, Any], processes: Processes, *, force: bool) -> Iterator[None]:
    """The folder of a run, for the processes of one run alone."""
    with contextlib.ExitStack() as held:
        if processes.first:
            if output.is_file():
                raise OutputError(f"{output}: exists and is not a training run. Choose another folder.")
            try:
                output.mkdir(exist_ok=True)
            except OSError as error:
                raise OutputError(f"{output}: cannot be made: {error.strerror}") from error
            held.enter_context(locked(output))
            _open_folder(output, settings, force=force)
        processes.wait()
        yield


def _open_folder(output: Path, settings: dict[str, Any], *, force: bool) -> None:
    """Make sure that a folder is new or belongs to a run with these settings."""
    recipe = output / "recipe.json"
    text = json.dumps(settings, indent=1) + "\n"
    begun = checkpoint.latest(output) is not None
    if recipe.is_file() and (force or not begun):  # a run that failed before its first checkpoint lost nothing
        for path in (*output.glob(checkpoint.PATTERN), output / "log.jsonl"):
            path.unlink(missing_ok=True)
    elif recipe.is_file() and recipe.read_text("utf-8") != text:
        raise OutputError(
            f"{output}: holds a run with other settings. Choose another folder, or pass --force to restart."
        )
    elif not recipe.is_file() and any(output.iterdir()):
        raise OutputError(f"{output}: exists and is not a training run. Choose another folder.")
    for part in output.glob(".*.part"):  # what a killed run was writing
        shutil.rmtree(part, ignore_errors=True)
    write_text(recipe, text)


def valid_documents(corpus: Corpus) -> list[Document]:
    """The first held-out sentences as words, each by itself: a corpus keeps no limits of documents."""
    types = corpus.types
    documents: list[Document] = []
    words = 0
    for ids in corpus.sentences("valid"):
        documents.append([[types[number] for number in ids.tolist()]])
        words += len(ids)
        if words >= VALID_WORDS:
            break
    return documents


@contextlib.contextmanager
def _signals() -> Iterator[threading.Event]:
    """SIGINT and SIGTERM raise a flag that the run looks at between steps."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda number, frame: stopped.set())
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Run:
    """The parts of a run and the loop over them."""

    def __init__(
        self, model: Pretrained, trainer: Trainer, step: Step, output: Path, report: Report, valid: list[Document],
        settings: dict[str, Any], counts: Any,
    ) -> None:  # fmt: skip
        self.step = step
        self.model, self.trainer, self.output, self.report = model, trainer, output, report
        self.valid, self.settings = valid, settings
        self.config, self.processes = trainer.config, trainer.processes
        self.epoch_words = counts.words + counts.sentences  # an end mark for each sentence
        self.lowest = math.inf  # loss reported so far

    def run(self, feed: Feed, start: checkpoint.Position, stopped: threading.Event) -> Result:
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
            position = checkpoint.Position(step, words, seconds, streams, self.settings)
            asked = (step % STOP_EVERY == 0 or self.processes.count == 1) and self.processes.any(stopped.is_set())
            ending = done or asked
            if step % self.config.report_every == 0 or ending:
                self._check(means, step)
                now = time.monotonic()
                rate = (words - reported[1]) / max(1e-9, now - reported[0])
                left = max(0.0, seconds / progress * (1 - progress)) if progress else None
                self.report.step(
                    step=step, words=words, losses=means.tolist(), norm=float(self.trainer.norm), rate=rate,
                    lr=self._lr(step, progress), left=left,
                )  # fmt: skip
                reported = (now, words)
            if ending or step % self.config.checkpoint_every == 0:
                self._check(means, step)
                checkpoint.save(self.output, self.trainer, position)
            if done:
                return self._finish(position)
            if ending:
                self.report.note(f"stopped at step {step:,}; the same command goes on from here", step=step)
                return Result(False, step, words, None)
            if step % self.config.validate_every == 0:
                self._validate(position)
                reported = (time.monotonic(), words)  # its time is not the training's
        raise AssertionError("a stream has no end")

    def _progress(self, words: int, seconds: float) -> float:
        """The share of the budget that is spent."""
        if self.config.minutes is not None:
            return seconds / (60 * self.config.minutes)
        total = self.config.words if self.config.words is not None else (self.config.epochs or 0) * self.epoch_words
        # The tail of an epoch that fills no batch is left out, so count as many batches as fit, at least one.
        size = self.config.batch * self.config.steps
        return words / max(size, total // size * size)

    def _lr(self, step: int, progress: float) -> float:
        lr = self.config.lr * min(1.0, (step + 1) / self.config.warmup if self.config.warmup else 1.0)
        if self.config.decay == "linear":
            lr *= max(0.0, 1 - progress)
        elif self.config.decay == "cosine":
            lr *= 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
        return lr

    def _check(self, means: Tensor, step: int) -> None:
        """Stop a run that has diverged: a loss that is no number, or one that has risen far above the lowest."""
        bad, loss = int(self.trainer.bad_step), float(means.mean())
        self.lowest = min(self.lowest, loss)
        if bad:
            what = f"the loss is not a number since step {bad:,}"
        elif loss > RISE * self.lowest + 1:
            what = f"the loss rose from {self.lowest:.2f} to {loss:.2f} by step {step:,}"
        else:
            return
        found = checkpoint.latest(self.output)
        kept = f"the last good checkpoint is {found.name}" if found else "no checkpoint had been written yet"
        raise DivergedError(f"{self.output}: {what}; stopped, {kept}. Try a lower training.lr or training.clip_norm.")

    def _validate(self, position: checkpoint.Position) -> Perplexity | None:
        if not self.valid:
            return None
        self.model.bilm.eval()
        found = perplexity(self.model, self.valid, context="sentence", batch_size=256)
        self.report.validation(
            step=position.step, words=position.words, forward=found.forward, backward=found.backward,
            average=found.average,
        )  # fmt: skip
        return found

    def _finish(self, position: checkpoint.Position) -> Result:
        valid = self._validate(position)
        self.model.bilm.eval()
        if self.processes.first:
            native.write(self.model, self.output / "model", force=True)
            self.report.note(f"finished: {self.output / 'model'}", step=position.step)
        self.processes.wait()
        return Result(True, position.step, position.words, valid)
