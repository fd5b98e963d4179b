"""elmo vectors: static vectors, one a word: train them, ask them, measure them."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyelmo.cli.options import add_actions
from pyelmo.errors import InputError

if TYPE_CHECKING:
    from pyelmo.vectors.evaluate import AnalogyScore
    from pyelmo.vectors.static import SimilarWord, StaticVectors

HELP = "train, ask and measure static word vectors (word2vec, fastText, GloVe)"
EXAMPLE = "elmo vectors analogy VECTORS king man woman -k 3"
EXAMPLES = {
    "train": "elmo vectors train corpus -o vectors.vec --model cbow --min-count 2 --workers 2",
    "similar": "elmo vectors similar VECTORS king -k 3",
    "analogy": EXAMPLE,
    "evaluate": "elmo vectors evaluate VECTORS --analogies questions.txt --pairs wordsim.tsv simlex.txt --json",
}
_FILE = "word2vec (text, binary), GloVe, fastText (.bin, .vec) or gensim; the format is found from the file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_actions(parser, _ACTIONS, EXAMPLES)


def run(args: argparse.Namespace) -> None:
    args.act(args)


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("corpus", metavar="DIR", help="what elmo prepare made")
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True,
        help=".vec, .txt (text), .bin (binary; fastText's with --subwords) or .kv (gensim)",
    )  # fmt: skip
    parser.add_argument("--format", help="word2vec, word2vec-binary, glove, fasttext or gensim (default: by the name)")
    parser.add_argument("--model", choices=("skip-gram", "cbow"), default="skip-gram", help="default: skip-gram")
    parser.add_argument(
        "--loss", choices=("negative", "hierarchical"), default="negative",
        help="negative sampling (default) or hierarchical softmax",
    )  # fmt: skip
    parser.add_argument("--subwords", action="store_true", help="fastText: words are made of n-grams")
    parser.add_argument("--dim", type=int, default=100, help="size of a vector (default: 100)")
    parser.add_argument("--window", type=int, default=5, help="words to each side at most (default: 5)")
    parser.add_argument("--negative", type=int, default=5, help="negative samples a word (default: 5)")
    parser.add_argument("--min-count", type=int, default=5, help="leave rarer words out (default: 5)")
    parser.add_argument("--epochs", type=int, default=5, help="default: 5")
    parser.add_argument("--lr", type=float, default=0.025, help="learning rate at the start (default: 0.025)")
    parser.add_argument(
        "--sample", type=float, default=1e-3, help="share above which words are thinned (default: 1e-3)"
    )
    parser.add_argument("--lowercase", action="store_true", help="read every word in lower case")
    parser.add_argument("--ngrams", type=int, nargs=2, default=(3, 6), metavar=("MIN", "MAX"), help="default: 3 6")
    parser.add_argument("--buckets", type=int, default=2_000_000, help="rows for n-grams (default: 2000000)")
    parser.add_argument("--workers", type=int, default=1, help="threads; with 1 a run can be repeated (default: 1)")
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress")


def _train(args: argparse.Namespace) -> None:
    from pyelmo.files import check_output
    from pyelmo.vectors import store
    from pyelmo.vectors.train import VectorSettings, train

    # What would fail at the end fails before the work.
    output = Path(args.output)
    check_output(output, force=args.force)
    form = store.format_of(output, args.format, subwords=args.subwords)
    settings = VectorSettings(
        model=args.model, loss=args.loss, subwords=args.subwords, dim=args.dim, window=args.window,
        negative=args.negative, min_count=args.min_count, epochs=args.epochs, lr=args.lr, sample=args.sample,
        lowercase=args.lowercase, ngrams=tuple(args.ngrams), buckets=args.buckets, workers=args.workers, seed=args.seed,
    )  # fmt: skip
    vectors = train(args.corpus, settings, progress=not args.quiet)
    vectors.save(output, format=form, force=args.force)
    print(f"{output}: {len(vectors):,} words of {vectors.dim} numbers ({form})", file=sys.stderr)


def _add_vectors(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("vectors", metavar="VECTORS", help=_FILE)


def _add_answers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-k", "--count", type=int, default=10, help="how many words (default: 10)")
    parser.add_argument("--lower-unknown", action="store_true", help="look an unknown word up in lower case")
    parser.add_argument("--json", action="store_true", help="for programs")


def _add_similar(parser: argparse.ArgumentParser) -> None:
    _add_vectors(parser)
    parser.add_argument("word", metavar="WORD")
    _add_answers(parser)


def _add_analogy(parser: argparse.ArgumentParser) -> None:
    _add_vectors(parser)
    for name, text in (("a", "king"), ("b", "man: taken away"), ("c", "woman: added")):
        parser.add_argument(name, metavar=name.upper(), help=text)
    _add_answers(parser)


def _similar(args: argparse.Namespace) -> None:
    _print_words(args, _load(args).similar(args.word, args.count))


def _analogy(args: argparse.Namespace) -> None:
    _print_words(args, _load(args).analogy(args.a, args.b, args.c, args.count))


def _load(args: argparse.Namespace) -> StaticVectors:
    from pyelmo.vectors.static import StaticVectors

    return StaticVectors.load(args.vectors, lower_unknown=args.lower_unknown)


def _print_words(args: argparse.Namespace, found: list[SimilarWord]) -> None:
    if args.json:
        print(json.dumps([vars(neighbour) for neighbour in found], indent=1, ensure_ascii=False))
        return
    for neighbour in found:
        print(f"{neighbour.similarity:.4f}\t{neighbour.word}")


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    _add_vectors(parser)
    parser.add_argument(
        "--analogies", metavar="FILE", nargs="+", default=[],
        help="four words a line under lines ': section' (Google's questions-words.txt)",
    )  # fmt: skip
    parser.add_argument(
        "--pairs", metavar="FILE", nargs="+", default=[],
        help="two words and a judgement a line, with tabs or commas (WordSim-353, SimLex-999)",
    )  # fmt: skip
    parser.add_argument("--case", action="store_true", help="tell capitals from small letters")
    parser.add_argument("--vocab-size", type=int, metavar="N", help="use the first N words alone (default: all)")
    parser.add_argument("--json", action="store_true", help="for programs")


def _evaluate(args: argparse.Namespace) -> None:
    from pyelmo.vectors import evaluate
    from pyelmo.vectors.static import StaticVectors

    if not args.analogies and not args.pairs:
        raise InputError("nothing to measure: name --analogies or --pairs")
    if args.vocab_size is not None and args.vocab_size < 1:
        raise InputError(f"--vocab-size {args.vocab_size}: must be at least 1")
    # Every test set is read before the vectors, which take longer.
    questions = {path: evaluate.read_analogies(path) for path in args.analogies}
    pairs = {path: evaluate.read_pairs(path) for path in args.pairs}
    vectors = StaticVectors.load(args.vectors)
    facts: dict[str, Any] = {"words": len(vectors), "dim": vectors.dim, "analogies": {}, "pairs": {}}
    for path, sections in questions.items():
        found = evaluate.analogies(vectors, sections, ignore_case=not args.case, vocab_size=args.vocab_size)
        scores = {**found.sections, "semantic": found.semantic, "syntactic": found.syntactic, "total": found.total}
        facts["analogies"][path] = {name: _facts(score) for name, score in scores.items()}
    for path, judged in pairs.items():
        result = evaluate.similarity(vectors, judged, ignore_case=not args.case, vocab_size=args.vocab_size)
        facts["pairs"][path] = {**vars(result), "coverage": result.coverage}
    if args.json:
        print(json.dumps(facts, indent=1, ensure_ascii=False))
    else:
        _print_facts(facts)


def _facts(score: AnalogyScore) -> dict[str, Any]:
    return {"accuracy": score.accuracy, **vars(score), "coverage": score.coverage}


def _print_facts(facts: dict[str, Any]) -> None:
    print(f"{facts['words']:,} words of {facts['dim']} numbers")
    for path, scores in facts["analogies"].items():
        print(f"\n{path}: right answers in percent of the known questions")
        width = max(map(len, scores))
        for name, score in scores.items():
            share = "    -" if score["accuracy"] is None else f"{score['accuracy']:5.1f}"
            known = f"{score['right']:,} of {score['known']:,} known, {score['questions']:,} asked"
            print(f"  {name:{width}}  {share}  {known}")
    for path, found in facts["pairs"].items():
        both = ("-" if value is None else f"{value:.3f}" for value in (found["spearman"], found["spearman_known"]))
        print(f"\n{path}: Spearman {next(both)} over all {found['pairs']} pairs, an unknown one at 0;", end=" ")
        print(f"{next(both)} over the {found['known']} known")


_ACTIONS = {
    "train": ("train vectors on a prepared corpus", _add_train, _train),
    "similar": ("give the words nearest to a word", _add_similar, _similar),
    "analogy": ("give the words nearest to A - B + C: king - man + woman", _add_analogy, _analogy),
    "evaluate": ("measure analogies and the similarity of pairs", _add_evaluate, _evaluate),
}
