"""elmo task: downstream tasks with and without an encoder: train, evaluate, predict, compare."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from pyelmo.cli.options import add_actions
from pyelmo.cli.tasks import table1 as task_table1
from pyelmo.cli.train.pretrain import check_device, quiet, say
from pyelmo.errors import InputError

HELP = "train task networks with and without ELMo, use them, and write the table that compares them"
EXAMPLE = "elmo task train ner --data train.conll dev.conll --encoder LM -o run --seeds 1 --set training.epochs=2"
EXAMPLES = {
    "train": EXAMPLE,
    "evaluate": "elmo task evaluate run dev.conll",
    "predict": 'elmo task predict run "John lives in Paris ."',
    "ensemble": "elmo task ensemble nli-run --data pairs.jsonl -o ensemble.md",
    "table": "elmo task table baseline run -o table.md",
    "table1": task_table1.EXAMPLE,
}
# What models are asked about where it is more than a sentence: the texts themselves, or files with them.
_ASKED = {
    "premise": ("TEXT", "of entailment: what is known"),
    "hypothesis": ("TEXT", "... and what may follow from it"),
    "passage": ("FILE", "of question answering: the text that holds the answer"),
    "question": ("TEXT", "... and what is asked about it"),
    "document": ("FILE", "of coreference: the whole text"),
}
# Options that are settings of the recipe under a shorter name.
_SETTINGS = {
    "elmo": "elmo.where", "layers": "elmo.layers", "penalty": "elmo.penalty", "dropout": "elmo.dropout",
    "tune_encoder": "elmo.tune", "tune_vectors": "words.tune",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_actions(parser, _ACTIONS, EXAMPLES)


def run(args: argparse.Namespace) -> None:
    args.act(args)


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="NAME", help="ner, srl, sentiment, nli, qa or coref")
    parser.add_argument("--data", nargs="+", required=True, metavar="FILE", help="TRAIN DEV [TEST]")
    parser.add_argument("-o", "--output", required=True, metavar="RUN", help="the run's folder; a killed one goes on")
    parser.add_argument(
        "--encoder", default="en", help="as for elmo probe: a model, vectors.bin, ...; none for none (default: en)"
    )
    parser.add_argument("--vectors", metavar="FILE", help="static vectors beside the encoder's (default: new ones)")
    parser.add_argument("--tune-vectors", action="store_true", default=None, help="train those of the file too")
    parser.add_argument("--elmo", choices=("input", "output", "both"), help="where the encoder comes in")
    parser.add_argument("--layers", choices=("mix", "top", "average"), help="which of its layers")
    parser.add_argument(
        "--lambda", dest="penalty", type=float, metavar="L", help="of the mix's weights (default: 0.001)"
    )
    parser.add_argument("--dropout", type=float, metavar="P", help="of the mixed vectors (default: 0.5)")
    parser.add_argument("--tune-encoder", action="store_true", default=None, help="train the biLM too: no cache, slow")
    parser.add_argument(
        "--seeds",
        type=_seeds,
        default=(1, 3),
        metavar="N",
        help="trainings, or from one seed to another: 4-6; 0 only fills the cache (default: 3)",
    )
    parser.add_argument("--fraction", type=float, default=1.0, metavar="F", help="of the training data (default: 1)")
    parser.add_argument("--recipe", metavar="NAME", help="a TOML file, or one in the box (default: the task's own)")
    parser.add_argument("--set", metavar="A.B=C", action="append", default=[], help="change a setting of the recipe")
    parser.add_argument("--cache", metavar="DIR", help="for vectors of frozen encoders (default: cache beside RUN)")
    parser.add_argument(
        "--tensorboard", action="store_true", help="also write tensorboard folders (extra: tensorboard)"
    )
    parser.add_argument("--device", help="cpu or cuda (default: cpu)")
    parser.add_argument("--force", action="store_true", help="forget a run that is in RUN and start again")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress")


def _train(args: argparse.Namespace) -> None:
    from pyelmo.experiments.jobs import begin_job
    from pyelmo.provenance import plain_command
    from pyelmo.recipes import read_settings
    from pyelmo.tasks.harness.metrics import main_score
    from pyelmo.tasks.harness.run import CACHE, RunSettings, embed, train
    from pyelmo.tasks.harness.task import find_task

    in_job = begin_job(args.device)
    bars = not in_job and not args.quiet  # a log is no place for them
    kind = find_task(args.task).recipe
    given = {name: getattr(args, option) for option, name in _SETTINGS.items() if getattr(args, option) is not None}
    changes = [f"{name}={str(value).lower()}" for name, value in given.items()]
    recipe = read_settings(kind, args.recipe or args.task, changes + args.set, group="task")
    plan = RunSettings(
        task=args.task, data=args.data, recipe=recipe, encoder=None if args.encoder == "none" else args.encoder,
        vectors=args.vectors, fraction=args.fraction, seeds=args.seeds[1] or 1, first_seed=args.seeds[0],
    )  # fmt: skip
    device = check_device(args.device) or "cpu"
    if not args.seeds[1]:
        place = args.cache or Path(args.output).parent / CACHE
        there = embed(plan, place, device=device, progress=bars)
        print(f"{place}: {'has' if there else 'is not needed for'} the vectors of {args.encoder}")
        return
    try:
        results = train(
            plan, args.output, cache_folder=args.cache, device=device,
            say=quiet if args.quiet else say, progress=bars, tensorboard=args.tensorboard, force=args.force,
            origin={"command": plain_command("elmo", _told(args))}, shared_gpu=in_job,
        )  # fmt: skip
    except KeyboardInterrupt as stop:
        raise type(stop)(f"the same command goes on with {args.output}") from stop
    part = "test" if "test" in results[0] else "dev"
    print(f"{args.output}: {part} {_scores(args.task, [main_score(result[part]) for result in results])}")


def _told(args: argparse.Namespace) -> list[str]:
    """The command's arguments as they count for a result."""
    words = ["task", "train", args.task, "--data", *args.data, "--encoder", args.encoder]
    words += ["--vectors", args.vectors] if args.vectors else []
    for option, name in (("elmo", "elmo"), ("layers", "layers"), ("penalty", "lambda"), ("dropout", "dropout")):
        value = getattr(args, option)
        words += [f"--{name}", str(value)] if value is not None else []
    words += [f"--{name.replace('_', '-')}" for name in ("tune_vectors", "tune_encoder") if getattr(args, name)]
    words += ["--fraction", str(args.fraction)] if args.fraction != 1 else []
    words += ["--recipe", args.recipe] if args.recipe else []
    words += [word for change in args.set for word in ("--set", change)]
    first, count = args.seeds
    return [*words, "--seeds", str(count) if first == 1 else f"{first}-{first + count - 1}", "-o", args.output]


def _seeds(text: str) -> tuple[int, int]:
    """The first seed and how many: "3" or "4-6"; "0" for none."""
    first, dash, last = text.partition("-")
    numbers = (int(first), int(last) - int(first) + 1) if dash else (1, int(first))
    if min(numbers) < (1 if dash else 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seeds, and no range of them such as 4-6")
    return numbers


def _scores(task: str, scores: list[float]) -> str:
    import statistics

    from pyelmo.tasks.harness.task import find_task

    deviation = f" ± {statistics.stdev(scores):.2f} over {len(scores)} seeds" if len(scores) > 1 else ""
    return f"{find_task(task).metric.name} {statistics.fmean(scores):.2f}{deviation}"


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="RUN", help="a run's folder, or that of one of its models")
    parser.add_argument(
        "--encoder", metavar="MODEL", help="where the model's encoder lies now (default: as in training)"
    )
    parser.add_argument("--device", help="cpu or cuda (default: cpu)")
    parser.add_argument("--json", action="store_true", help="for programs")


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    parser.add_argument("data", metavar="DATA", help="a labelled file")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress")


def _evaluate(args: argparse.Namespace) -> None:
    from pyelmo.tasks.harness.model import load, seed_folders

    folders = seed_folders(args.model)
    found = []
    for folder in folders:
        model = load(folder, encoder=args.encoder, device=check_device(args.device) or "cpu")
        found.append(model.evaluate(args.data, progress=not args.quiet))
    if args.json:
        about = [{"model": str(folder), "metric": model.task.metric.name} for folder in folders]
        print(json.dumps([{**one, **each.facts()} for one, each in zip(about, found, strict=True)], indent=1))
        return
    for folder, each in zip(folders, found, strict=True):
        print(f"{folder}: {each}")
    print(f"{args.data}: {_scores(model.task.name, [each.main for each in found])}")


def _add_predict(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    parser.add_argument("text", nargs="*", metavar="TEXT", help="sentences")
    for name, (metavar, summary) in _ASKED.items():
        parser.add_argument(f"--{name}", metavar=metavar, help=summary)
    parser.add_argument(
        "--input", metavar="FILE", help="a sentence a line, or several texts with tabs between; - is stdin"
    )


def _predict(args: argparse.Namespace) -> None:
    from pyelmo.tasks import load

    if not (args.text or args.input or any(getattr(args, name) for name in _ASKED)):
        raise InputError("no sentence was given; name some, or a file with --input")
    model = load(args.model, encoder=args.encoder, device=check_device(args.device) or "cpu")
    names = model.task.input_names
    questions = _questions(args, model.task.name, names)
    for question, examples in zip(questions, model.predict(questions), strict=True):
        if not args.json:
            print(model.task.format(examples) or question)
            continue
        if isinstance(question, str):
            about = {"text": question, "words": examples[0].words if examples else []}
        else:
            about = dict(zip(names, question, strict=True))
        answers = [model.task.to_json(each) for each in examples]
        print(json.dumps({**about, "answers": answers}, ensure_ascii=False))


def _questions(args: argparse.Namespace, task: str, names: tuple[str, ...]) -> list[Any]:
    """What is asked: texts where the task asks about one, else as many together as it asks about."""
    from pyelmo.text.lines import open_text, read_lines

    def read(path: str) -> list[str]:
        with open_text(path) as file:
            return list(read_lines(file, path))

    given = {name: getattr(args, name) for name in _ASKED if getattr(args, name) is not None}
    if set(given) - set(names) or (given and len(given) < len(names)) or (args.text and len(names) > 1):
        wanted = " and ".join(f"--{name}" for name in names if name in _ASKED) or "sentences"
        raise InputError(f"{args.model}: {task} is asked about {wanted}, or give a file with --input")
    for name in given:
        if _ASKED[name][0] == "FILE":
            given[name] = "\n".join(read(given[name]))
    questions: list[Any] = list(args.text)
    if given:
        texts = [given[name] for name in names]
        questions.append(texts if len(names) > 1 else texts[0])
    lines = [line for line in read(args.input) if line.strip()] if args.input else []
    for line in lines:
        if len(names) > 1 and line.count("\t") != len(names) - 1:
            raise InputError(f"{args.input}: expected {' and '.join(names)} with a tab between, got {line[:60]!r}")
        questions.append(line.split("\t") if len(names) > 1 else line)
    return questions


def _add_ensemble(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="runs, whose seeds are members, or single models")
    parser.add_argument("--data", required=True, metavar="FILE", help="a labelled file")
    parser.add_argument("-o", "--output", metavar="FILE", help="FILE.md and FILE.json (default: stdout)")
    parser.add_argument("--encoder", metavar="MODEL", help="where the models' encoder lies now")
    parser.add_argument("--device", help="cpu or cuda (default: cpu)")
    parser.add_argument("--json", action="store_true", help="JSON on stdout instead of Markdown")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress")


def _ensemble(args: argparse.Namespace) -> None:
    from pyelmo.tasks.compare import ensemble

    found = ensemble.evaluate(
        args.runs, args.data, encoder=args.encoder, device=check_device(args.device) or "cpu", progress=not args.quiet
    )
    if args.output:
        for path in ensemble.write(found, Path(args.output)):
            print(f"{path}: written", file=sys.stderr)
        return
    print(ensemble.to_json(found) + "\n" if args.json else ensemble.markdown(found), end="")


def _add_table(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="the first of a task, data and fraction is what the others are compared with",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="FILE.md, FILE.json and FILE.svg (default: stdout)")
    parser.add_argument("--json", action="store_true", help="JSON on stdout instead of Markdown")


def _table(args: argparse.Namespace) -> None:
    from dataclasses import asdict

    from pyelmo.tasks.compare import comparison

    runs = [comparison.read_run(folder) for folder in args.runs]
    if args.output:
        for path in comparison.write(runs, Path(args.output)):
            print(f"{path}: written", file=sys.stderr)
        return
    found = comparison.rows(runs)
    print(json.dumps([asdict(row) for row in found], indent=1) if args.json else comparison.markdown(found), end="")


_ACTIONS = {
    "train": ("train a task's network; the same command again goes on where it stopped", _add_train, _train),
    "evaluate": ("score a trained model on a labelled file", _add_evaluate, _evaluate),
    "predict": ("answer about raw text with a trained model", _add_predict, _predict),
    "ensemble": ("score several trained models as one, by the mean of their probabilities", _add_ensemble, _ensemble),
    "table": ("compare runs: absolute and relative improvement, with a paired bootstrap", _add_table, _table),
    "table1": (task_table1.HELP, task_table1.add_arguments, task_table1.run),
}
