"""elmo task train: the network of a downstream task, trained with several seeds."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pyelmo.cli import options
from pyelmo.cli.messages import resumable, say, say_nothing
from pyelmo.cli.tasks.evaluate import summary
from pyelmo.tasks.harness.formats import FORMATS

HELP = "Train the network of a task; the same command again resumes an interrupted run."
EXAMPLE = "elmo task train ner --data train.conll dev.conll --encoder en -o run --seeds 1 --set training.epochs=2"
# Options that change a setting of the recipe: the attribute of the arguments, and the setting.
_SETTINGS = {
    "elmo": "elmo.where", "layers": "elmo.layers", "penalty": "elmo.penalty", "dropout": "elmo.dropout",
    "tune_encoder": "elmo.tune", "tune_vectors": "words.tune",
}  # fmt: skip
_COLUMNS = ("column", "label", "encoding")  # options that change settings of the data


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="task to train: ner, srl, sentiment, nli, qa or coref")
    parser.add_argument(
        "--data", nargs="+", required=True, metavar="FILE", help="training set, dev set and, optionally, test set"
    )
    parser.add_argument("-o", "--output", required=True, metavar="RUN", help="folder of the run")
    parser.add_argument(
        "--encoder", metavar="ENCODER", default="en", help=f"{options.ENCODER}; or none, for a baseline (default: en)"
    )
    parser.add_argument(
        "--vectors", metavar="FILE",
        help="static vectors to use beside the encoder (default: vectors learned from the training set)",
    )  # fmt: skip
    parser.add_argument(
        "--tune-vectors", action="store_true", default=None, help="also train the static vectors of --vectors"
    )
    parser.add_argument(
        "--elmo", choices=("input", "output", "both"),
        help="where the encoder's vectors enter the network (default: as in the recipe, else input)",
    )  # fmt: skip
    parser.add_argument(
        "--layers", choices=("mix", "top", "average"),
        help="layers to use: a learned mix, the top layer, or the average of all (default: mix)",
    )  # fmt: skip
    parser.add_argument(
        "--lambda",
        dest="penalty",
        type=float,
        metavar="L",
        help="L2 penalty on the layer weights (default: as in the recipe, else 0.001)",
    )
    parser.add_argument(
        "--dropout", type=float, metavar="P", help="dropout on the mixed vectors (default: as in the recipe, else 0.5)"
    )
    parser.add_argument(
        "--tune-encoder", action="store_true", default=None,
        help="also train the biLM of the encoder, which is slow because its vectors cannot be cached",
    )  # fmt: skip
    parser.add_argument(
        "--seeds", type=_seeds, default=(1, 3), metavar="N",
        help="number of seeds to train with, or a range such as 4-6; 0 only fills the cache (default: 3)",
    )  # fmt: skip
    parser.add_argument(
        "--fraction", type=float, default=1.0, metavar="F", help="fraction of the training set to use (default: 1)"
    )
    _add_columns(parser)
    options.add_recipe(parser, "ner, srl, sentiment, ...", default=None, otherwise="the task's own")
    parser.add_argument(
        "--cache", metavar="DIR", help="folder for the vectors of the frozen encoder (default: cache beside RUN)"
    )
    options.add_tensorboard(parser)
    options.add_device(parser)
    options.add_threads(parser, otherwise="1 to train, all cores to embed")
    options.add_force(parser, "delete the run in RUN and start again")
    options.add_quiet(parser)
    _add_formats(parser)


def _add_columns(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--column", metavar="NAME",
        help="column with the text in tables (default: text for sentiment, tokens for ner)",
    )  # fmt: skip
    parser.add_argument(
        "--label", metavar="NAME",
        help="column with the label in tables, or key in CoNLL-U (default: label for sentiment; tags or NER for ner)",
    )  # fmt: skip
    options.add_encoding(parser)


def _add_formats(parser: argparse.ArgumentParser) -> None:
    """Add the list of formats to the help."""
    for task, formats in FORMATS.items():
        lines = (f"{name}: {text}" for name, text in formats.items())
        parser.add_argument_group(
            f"formats of {task} (--set data.format=...; the first is the usual one)", "; ".join(lines)
        )


def run(args: argparse.Namespace) -> None:
    from pyelmo.experiments.jobs import begin_job
    from pyelmo.provenance import plain_command
    from pyelmo.recipes import read_settings
    from pyelmo.tasks.harness.metrics import main_score
    from pyelmo.tasks.harness.run import CACHE, RunSettings, fill_cache, train_run
    from pyelmo.tasks.harness.task import find_task

    in_job = begin_job(args.device)  # before torch looks for a GPU
    device = options.choose_device(args.device)
    options.set_threads(args.threads)
    bars = not in_job and not args.quiet  # the output of a job goes to a log file
    values = {name: getattr(args, option) for option, name in _SETTINGS.items() if getattr(args, option) is not None}
    changes = [f"{name}={str(value).lower()}" for name, value in values.items()]
    changes += [*_columns(args), *args.set]
    recipe = read_settings(find_task(args.task).recipe, args.recipe or args.task, changes, group="task")
    settings = RunSettings(
        task=args.task, data=args.data, recipe=recipe, encoder=None if args.encoder == "none" else args.encoder,
        vectors=args.vectors, fraction=args.fraction, seeds=args.seeds[1] or 1, first_seed=args.seeds[0],
    )  # fmt: skip
    if not args.seeds[1]:
        cache = args.cache or Path(args.output).parent / CACHE
        needed = fill_cache(settings, cache, device=device, progress=bars)
        print(f"{cache}: {'has' if needed else 'is not needed for'} the vectors of {args.encoder}")
        return
    with resumable(args.output):
        results = train_run(
            settings, args.output, cache_folder=args.cache, device=device, threads=args.threads or 1,
            say=say_nothing if args.quiet else say, progress=bars, tensorboard=args.tensorboard, force=args.force,
            origin={"command": plain_command("elmo", _result_arguments(args))}, shared_gpu=in_job,
        )  # fmt: skip
    scored = "test" if "test" in results[0] else "dev"
    print(f"{args.output}: {scored} {summary(args.task, [main_score(result[scored]) for result in results])}")


def _columns(args: argparse.Namespace) -> list[str]:
    """Return the changes by --column, --label and --encoding; columns have names in tables, else numbers."""
    changes = []
    for option in _COLUMNS:
        value = getattr(args, option)
        if value is None:
            continue
        names = {"column": "word", "label": "label"} if value.lstrip("-").isdecimal() else {"label": "tags"}
        name = names.get(option, option) if args.task == "ner" else option
        changes.append(
            f"data.{name}={value if name in ('word', 'label') and args.task == 'ner' else json.dumps(value)}"
        )
    return changes


def _result_arguments(args: argparse.Namespace) -> list[str]:
    """Return the arguments that a result depends on."""
    words = ["task", "train", args.task, "--data", *args.data, "--encoder", args.encoder]
    words += ["--vectors", args.vectors] if args.vectors else []
    for option, name in (("elmo", "elmo"), ("layers", "layers"), ("penalty", "lambda"), ("dropout", "dropout")):
        value = getattr(args, option)
        words += [f"--{name}", str(value)] if value is not None else []
    words += [f"--{name.replace('_', '-')}" for name in ("tune_vectors", "tune_encoder") if getattr(args, name)]
    words += ["--fraction", str(args.fraction)] if args.fraction != 1 else []
    for name in _COLUMNS:
        words += [f"--{name}", getattr(args, name)] if getattr(args, name) is not None else []
    words += ["--recipe", args.recipe] if args.recipe else []
    words += [word for change in args.set for word in ("--set", change)]
    first, count = args.seeds
    return [*words, "--seeds", str(count) if first == 1 else f"{first}-{first + count - 1}", "-o", args.output]


def _seeds(text: str) -> tuple[int, int]:
    """Return the first seed and the number of seeds of "3" or "4-6"; "0" is no seed."""
    first, dash, last = text.partition("-")
    numbers = (int(first), int(last) - int(first) + 1) if dash else (1, int(first))
    if min(numbers) < (1 if dash else 0):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of seeds nor a range such as 4-6")
    return numbers
