"""elmo task evaluate: the scores of trained models on a labelled file."""

from __future__ import annotations

import argparse
import json

from pyelmo.cli import options

HELP = "Evaluate a trained model on a labelled file."
EXAMPLE = "elmo task evaluate run dev.conll"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_trained_model(parser)
    parser.add_argument("data", metavar="DATA", help="labelled file, in the format of the training data")
    options.add_device(parser)
    options.add_threads(parser)
    options.add_json(parser)
    options.add_quiet(parser)


def add_trained_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="RUN", help="folder of a run, or of one of its models")
    add_moved_encoder(parser)


def add_moved_encoder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--encoder", metavar="ENCODER", help="path of the encoder, if it has moved since training (default: as trained)"
    )


def run(args: argparse.Namespace) -> None:
    from pyelmo.tasks import load
    from pyelmo.tasks.harness.run_folder import seed_folders

    options.set_threads(args.threads)
    device = options.choose_device(args.device)
    folders = seed_folders(args.model)
    results = []
    for folder in folders:
        model = load(folder, encoder=args.encoder, device=device)
        results.append(model.evaluate(args.data, progress=not args.quiet))
    if args.json:
        metric = model.task.metric.name
        facts = [
            {"model": str(folder), "metric": metric, **result.facts()}
            for folder, result in zip(folders, results, strict=True)
        ]
        print(json.dumps(facts, indent=1))
        return
    for folder, result in zip(folders, results, strict=True):
        print(f"{folder}: {result}")
    print(f"{args.data}: {summary(model.task.name, [result.main for result in results])}")


def summary(task: str, scores: list[float]) -> str:
    """Return the mean score of several seeds, with its standard deviation."""
    import statistics

    from pyelmo.tasks.harness.task import find_task

    deviation = f" ± {statistics.stdev(scores):.2f} over {len(scores)} seeds" if len(scores) > 1 else ""
    return f"{find_task(task).metric.name} {statistics.fmean(scores):.2f}{deviation}"
