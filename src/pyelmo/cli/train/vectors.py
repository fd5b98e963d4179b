"""elmo vectors: train, distil, query and evaluate static word vectors, which have one vector per word."""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyelmo.cli import options
from pyelmo.cli.actions import Action
from pyelmo.cli.messages import say
from pyelmo.errors import InputError

if TYPE_CHECKING:
    from pyelmo.vectors.evaluate import AnalogyScore
    from pyelmo.vectors.static import SimilarWord, StaticVectors

HELP = "Train, distil, query and evaluate static word vectors (word2vec, fastText, GloVe)."
EXAMPLE = "elmo vectors train corpus -o vectors.vec --algorithm cbow --min-count 2 --threads 2"


def _add_corpus(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("corpus", metavar="CORPUS", help="folder that `elmo prepare` wrote, or a file of text")


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True,
        help="file to write: .vec or .txt (text), .bin (binary; fastText's format with --subwords) or .kv (gensim)",
    )  # fmt: skip
    parser.add_argument(
        "--format", metavar="FORMAT",
        help="format of the file: word2vec, word2vec-binary, glove, fasttext or gensim (default: by the suffix of OUT)",
    )  # fmt: skip


def _add_train(parser: argparse.ArgumentParser) -> None:
    _add_corpus(parser)
    _add_output(parser)
    _add_algorithm(parser)
    parser.add_argument(
        "--loss", choices=("negative", "hierarchical"), default="negative",
        help="loss function: negative sampling or hierarchical softmax (default: negative)",
    )  # fmt: skip
    parser.add_argument(
        "--subwords", action="store_true", help="also train vectors of character n-grams, as fastText does"
    )
    numbers: tuple[tuple[str, int, str], ...] = (
        ("--dim", 100, "dimension of a vector"),
        ("--window", 5, "maximum distance between a word and its context words"),
        ("--negative", 5, "number of negative samples per word"),
        ("--min-count", 5, "number of times a word must occur to get a vector"),
        ("--epochs", 5, "number of passes over the corpus"),
        ("--buckets", 2_000_000, "number of vectors that character n-grams share by hashing"),
    )
    for option, default, text in numbers:
        parser.add_argument(option, type=int, metavar="N", default=default, help=f"{text} (default: {default})")
    parser.add_argument(
        "--lr", type=float, metavar="RATE", default=0.025, help="initial learning rate (default: 0.025)"
    )
    parser.add_argument(
        "--sample", type=float, metavar="F", default=1e-3,
        help="relative frequency above which words are randomly skipped (default: 0.001)",
    )  # fmt: skip
    parser.add_argument("--lowercase", action="store_true", help="convert every word to lower case")
    parser.add_argument(
        "--ngrams", type=int, nargs=2, default=(3, 6), metavar=("MIN", "MAX"),
        help="shortest and longest character n-grams (default: 3 6)",
    )  # fmt: skip
    options.add_language(parser, default="general")
    options.add_reading(parser)
    options.add_threads(parser, default=1, note="; results are reproducible only with 1")
    options.add_seed(parser, default=1)
    options.add_force(parser)
    options.add_quiet(parser)


def _add_algorithm(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--algorithm", choices=("skip-gram", "cbow"), default="skip-gram",
        help="training algorithm of word2vec (default: skip-gram)",
    )  # fmt: skip


def _train(args: argparse.Namespace) -> None:
    from pyelmo.files import check_output
    from pyelmo.vectors import store
    from pyelmo.vectors.train import VectorSettings, train

    # Everything that may be wrong with the output is checked before the long training.
    options.check_at_least("--threads", args.threads, 1)
    output = Path(args.output)
    check_output(output, force=args.force)
    format = store.format_of(output, args.format, subwords=args.subwords)
    settings = VectorSettings(
        model=args.algorithm, loss=args.loss, subwords=args.subwords, dim=args.dim, window=args.window,
        negative=args.negative, min_count=args.min_count, epochs=args.epochs, lr=args.lr, sample=args.sample,
        lowercase=args.lowercase, ngrams=tuple(args.ngrams), buckets=args.buckets, workers=args.threads, seed=args.seed,
    )  # fmt: skip
    with _prepared(args, args.language) as corpus:
        vectors = train(corpus, settings, progress=not args.quiet)
    vectors.save(output, format=format, force=args.force)
    say(f"{output}: {len(vectors):,} vectors of dimension {vectors.dim} ({format})")


@contextlib.contextmanager
def _prepared(args: argparse.Namespace, language: str) -> Iterator[Path]:
    """Yield the folder of the corpus; a file of text is prepared in a temporary folder."""
    from pyelmo.corpus.corpus import PrepareSettings
    from pyelmo.corpus.prepare import prepare

    source = Path(args.corpus)
    if source.is_dir():
        yield source
        return
    settings = PrepareSettings(
        inputs=(args.corpus,), language=language, valid_fraction=0, column=args.column,
        input_format=args.input_format, encoding=args.encoding,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "corpus" if args.corpus == "-" else source.name)
        prepare(settings, corpus, progress=not args.quiet)
        yield corpus


def _add_pairs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="sentence, such as 'The quick brown fox jumps'")
    parser.add_argument(
        "--window", type=int, metavar="N", default=2,
        help="maximum distance between a word and its context words (default: 2)",
    )  # fmt: skip
    _add_algorithm(parser)
    options.add_language(parser, default="general")


def _pairs(args: argparse.Namespace) -> None:
    from pyelmo.text.tokens import split_words
    from pyelmo.vectors.pairs import training_pairs

    for pair in training_pairs(split_words(args.text, args.language), args.window, args.algorithm):
        print(" ".join(pair.inputs), pair.predicts, sep="\t")


def _add_softmax(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help=options.SOFTMAX_MODEL)
    _add_output(parser)
    options.add_force(parser)


def _softmax(args: argparse.Namespace) -> None:
    from pyelmo.files import check_output
    from pyelmo.vectors.softmax import softmax_vectors

    check_output(Path(args.output), force=args.force)
    vectors = softmax_vectors(args.model)
    vectors.save(args.output, format=args.format, force=args.force)
    say(f"{args.output}: {len(vectors):,} vectors of dimension {vectors.dim}")


def _add_distill(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help=options.MODEL)
    _add_corpus(parser)
    _add_output(parser)
    options.add_layers(
        parser, default="1", choices="top, average, the index of a layer from 0, or the weights of a mix"
    )
    numbers: tuple[tuple[str, int, str], ...] = (
        ("--occurrences", 20, "number of occurrences of a word, drawn at random, whose vectors are averaged"),
        ("--vocab-size", 20_000, "number of words, the most frequent ones, that get a vector"),
        ("--min-count", 5, "number of times a word must occur to get a vector"),
    )
    for option, default, text in numbers:
        parser.add_argument(option, type=int, metavar="N", default=default, help=f"{text} (default: {default})")
    options.add_model_files(parser)
    options.add_language(parser)
    options.add_reading(parser)
    options.add_device(parser)
    options.add_precision(parser)
    options.add_threads(parser)
    options.add_seed(parser, default=1)
    options.add_force(parser)
    options.add_quiet(parser)


def _distill(args: argparse.Namespace) -> None:
    from pyelmo.embed.embedder import load
    from pyelmo.files import check_output
    from pyelmo.vectors import store
    from pyelmo.vectors.distill import DistillSettings, distill

    output = Path(args.output)
    check_output(output, force=args.force)
    format = store.format_of(output, args.format, subwords=False)
    settings = DistillSettings(
        occurrences=args.occurrences, vocab_size=args.vocab_size, min_count=args.min_count, seed=args.seed
    )
    options.set_threads(args.threads)
    embedder = load(
        args.model, options=args.options, vocab=args.vocab, device=options.choose_device(args.device, args.precision),
        language=args.language, precision=args.precision, threads=args.threads,
    )  # fmt: skip
    layers = options.parse_layers(args.layers)
    with _prepared(args, embedder.language) as corpus:
        vectors = distill(embedder, corpus, settings, layers=layers, progress=not args.quiet)
    vectors.save(output, format=format, force=args.force)
    say(f"{output}: {len(vectors):,} vectors of dimension {vectors.dim} ({format})")


def _add_vectors(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "vectors", metavar="VECTORS",
        help="file of word vectors: word2vec (text or binary), GloVe, fastText (.bin, .vec) or gensim",
    )  # fmt: skip


def _add_answers(parser: argparse.ArgumentParser) -> None:
    options.add_count(parser, "words")
    parser.add_argument(
        "--lower-unknown", action="store_true", help="look up the lower case of a word that is out of vocabulary"
    )
    options.add_json(parser)


def _add_similar(parser: argparse.ArgumentParser) -> None:
    _add_vectors(parser)
    parser.add_argument("word", metavar="WORD", help="word whose nearest words are printed")
    _add_answers(parser)


def _add_analogy(parser: argparse.ArgumentParser) -> None:
    _add_vectors(parser)
    parser.add_argument("a", metavar="A", help="first word, such as king")
    parser.add_argument("b", metavar="B", help="word whose vector is subtracted, such as man")
    parser.add_argument("c", metavar="C", help="word whose vector is added, such as woman")
    _add_answers(parser)


def _similar(args: argparse.Namespace) -> None:
    _print_words(args, _load(args).similar(args.word, args.count))


def _analogy(args: argparse.Namespace) -> None:
    _print_words(args, _load(args).analogy(args.a, args.b, args.c, args.count))


def _load(args: argparse.Namespace) -> StaticVectors:
    from pyelmo.vectors.static import StaticVectors

    return StaticVectors.load(args.vectors, lower_unknown=args.lower_unknown)


def _print_words(args: argparse.Namespace, words: list[SimilarWord]) -> None:
    if args.json:
        print(json.dumps([vars(neighbour) for neighbour in words], indent=1, ensure_ascii=False))
        return
    for neighbour in words:
        print(f"{neighbour.similarity:.4f}\t{neighbour.word}")


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    _add_vectors(parser)
    parser.add_argument(
        "--analogies", metavar="FILE", nargs="+", default=[],
        help="files of analogies, four words per line, in sections that begin with ': NAME', such as Google's "
        "questions-words.txt (default: none)",
    )  # fmt: skip
    parser.add_argument(
        "--pairs", metavar="FILE", nargs="+", default=[],
        help="files of word pairs, two words and a human rating per line with tabs or commas between, such as "
        "WordSim-353 and SimLex-999 (default: none)",
    )  # fmt: skip
    parser.add_argument("--case", action="store_true", help="distinguish upper and lower case")
    parser.add_argument(
        "--vocab-size", type=int, metavar="N", help="number of words to use, from the start of the file (default: all)"
    )
    options.add_json(parser)


def _evaluate(args: argparse.Namespace) -> None:
    from pyelmo.vectors import evaluate
    from pyelmo.vectors.static import StaticVectors

    if not args.analogies and not args.pairs:
        raise InputError("there is nothing to evaluate. Name files with --analogies or --pairs")
    options.check_at_least("--vocab-size", args.vocab_size, 1)
    # The test sets are read first: a mistake in them is reported before the vectors, which take longer to read.
    questions = {path: evaluate.read_analogies(path) for path in args.analogies}
    pairs = {path: evaluate.read_pairs(path) for path in args.pairs}
    vectors = StaticVectors.load(args.vectors)
    facts: dict[str, Any] = {"words": len(vectors), "dim": vectors.dim, "analogies": {}, "pairs": {}}
    for path, sections in questions.items():
        result = evaluate.analogies(vectors, sections, ignore_case=not args.case, vocab_size=args.vocab_size)
        scores = {**result.sections, "semantic": result.semantic, "syntactic": result.syntactic, "total": result.total}
        facts["analogies"][path] = {name: _facts(score) for name, score in scores.items()}
    for path, rated in pairs.items():
        correlation = evaluate.similarity(vectors, rated, ignore_case=not args.case, vocab_size=args.vocab_size)
        facts["pairs"][path] = {**vars(correlation), "coverage": correlation.coverage}
    if args.json:
        print(json.dumps(facts, indent=1, ensure_ascii=False))
    else:
        _print_facts(facts)


def _facts(score: AnalogyScore) -> dict[str, Any]:
    return {"accuracy": score.accuracy, **vars(score), "coverage": score.coverage}


def _print_facts(facts: dict[str, Any]) -> None:
    print(f"{facts['words']:,} vectors of dimension {facts['dim']}")
    for path, scores in facts["analogies"].items():
        print(f"\n{path}: accuracy in percent of the questions whose words are all in the vocabulary")
        width = max(map(len, scores))
        for name, score in scores.items():
            accuracy = "-" if score["accuracy"] is None else f"{score['accuracy']:.1f}"
            counts = f"{score['right']:,} of {score['known']:,} ({score['questions']:,} with the skipped ones)"
            print(f"  {name:{width}}  {accuracy:>5}  {counts}")
    for path, scores in facts["pairs"].items():
        names = ("spearman", "spearman_known")
        total, known = ("-" if scores[name] is None else f"{scores[name]:.3f}" for name in names)
        print(
            f"\n{path}: Spearman {total} over all {scores['pairs']} pairs (similarity 0 if a word is unknown),", end=" "
        )
        print(f"{known} over the {scores['known']} pairs of known words")


ACTIONS = {
    "train": Action("Train word vectors on a prepared corpus.", EXAMPLE, _add_train, _train),
    "pairs": Action(
        "Print the examples that word2vec learns from: the words it reads, a tab, and the word it predicts.",
        "elmo vectors pairs 'The quick brown fox jumps' --window 2",
        _add_pairs,
        _pairs,
    ),
    "softmax": Action(
        "Write one vector for each word that a model predicts: the weights of its softmax.",
        "elmo vectors softmax en -o words.bin",
        _add_softmax,
        _softmax,
    ),
    "distill": Action(
        "Write the mean contextual vector of each frequent word of a corpus as static vectors.",
        "elmo vectors distill en corpus -o static.bin --vocab-size 50 --occurrences 3",
        _add_distill,
        _distill,
    ),
    "similar": Action(
        "Print the words that are nearest to a word.",
        "elmo vectors similar vectors.vec king -k 3",
        _add_similar,
        _similar,
    ),
    "analogy": Action(
        "Print the words that are nearest to A - B + C, such as king - man + woman.",
        "elmo vectors analogy vectors.vec king man woman -k 3",
        _add_analogy,
        _analogy,
    ),
    "evaluate": Action(
        "Evaluate word vectors on analogies and on the similarity of word pairs.",
        "elmo vectors evaluate vectors.vec --analogies questions.txt --pairs wordsim.tsv simlex.txt --json",
        _add_evaluate,
        _evaluate,
    ),
}
