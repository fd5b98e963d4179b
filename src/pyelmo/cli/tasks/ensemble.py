"""elmo task ensemble: the scores of several trained models as one."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyelmo.cli import options
from pyelmo.cli.messages import say
from pyelmo.cli.tasks.evaluate import add_moved_encoder

HELP = "Evaluate several trained models as one, by the mean of their probabilities."
EXAMPLE = "elmo task ensemble nli-run --data pairs.jsonl -o ensemble.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="folder of a run, all seeds of which are members, or of a single model"
    )
    parser.add_argument(
        "--data", required=True, metavar="FILE", help="labelled file, in the format of the training data"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="file to write, as FILE.md and FILE.json (default: print to stdout)"
    )
    add_moved_encoder(parser)
    options.add_device(parser)
    options.add_threads(parser)
    options.add_json(parser, "print JSON instead of Markdown")
    options.add_quiet(parser)


def run(args: argparse.Namespace) -> None:
    from pyelmo.tasks.compare import ensemble

    options.set_threads(args.threads)
    device = options.choose_device(args.device)
    result = ensemble.evaluate(args.runs, args.data, encoder=args.encoder, device=device, progress=not args.quiet)
    if args.output:
        for path in ensemble.write(result, Path(args.output)):
            say(f"{path}: written")
        return
    print(ensemble.to_json(result) + "\n" if args.json else ensemble.markdown(result), end="")
