"""The options that several commands share: each is written once, so that it has one name and one meaning everywhere.

Every `add_...` function adds one option, or a group that belongs together, to the parser of a command.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyelmo.errors import InputError, require_torch
from pyelmo.text.rows import FORMATS, PARQUET_COLUMNS, ReadOptions

if TYPE_CHECKING:
    from pyelmo.embed.embedder import Embedder

MODEL = "bundled model (en, ko), checkpoint file, folder or archive, its https address, or Hugging Face Hub id"
# How an encoder is named; see pyelmo.encoders.registry.
ENCODER = "a model as for `elmo embed`, a file of static vectors, cove:WEIGHTS+VECTORS or transformers:NAME"
TEXT_FILE = (
    "text file with one sentence per line, csv, tsv, JSON Lines or Parquet file with one per row, or FASTA file, "
    "compressed or not (.gz, .zst, .xz, .bz2); - is stdin"
)
DOCUMENT_FILE = (
    "text file with one paragraph per line and a blank line between documents, or csv, tsv, JSON Lines or "
    "Parquet file with one document per row, compressed or not (.gz, .zst, .xz, .bz2); - is stdin"
)
SOFTMAX_MODEL = f"{MODEL}; it must have a softmax"


def add_model(parser: argparse.ArgumentParser, text: str = MODEL) -> None:
    """Add --model; `choose_model` fills in its default, which follows --language."""
    text = f"{text} (default: en, or ko with --language ko)"
    parser.add_argument("--model", "-m", metavar="MODEL", help=text)


def choose_model(args: argparse.Namespace) -> tuple[str, str | None]:
    """Return --model, or the bundled model of --language, and the language whose rules split the text.

    Without --model, ko only chooses the Korean model, which splits by its own rules: it reads morphemes, and eojeols
    are foreign to it.
    """
    if args.model is not None:
        return str(args.model), args.language
    if args.language == "ko":
        return "ko", None
    return "ko" if args.language == "ko-morph" else "en", args.language


def add_model_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--options", metavar="FILE", help="options.json of an AllenNLP model (default: the one beside the weights)"
    )
    parser.add_argument(
        "--vocab", metavar="FILE", help="vocabulary of the model, one word per line (default: the model's own)"
    )


def add_language(
    parser: argparse.ArgumentParser,
    *,
    default: str | None = None,
    otherwise: str = "the model's language, else general",
    choices: Sequence[str] | None = None,
) -> None:
    """Add --language; `otherwise` describes the default where it is not a fixed language."""
    text = f"tokenisation rules: en, ko, ko-morph or general (default: {default or otherwise})"
    parser.add_argument("--language", metavar="LANG", default=default, choices=choices, help=text)


def add_tokenised(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tokenised", "--tokenized", action="store_true",
        help="read one sentence per line, with its words already separated by spaces",
    )  # fmt: skip


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that reads files of text: --column, --input-format and --encoding."""
    parser.add_argument(
        "--column", metavar="NAME",
        help="column with the text in csv, tsv, JSON Lines and Parquet files (default: must be named, except "
        f"for Parquet, where it is the first of {', '.join(PARQUET_COLUMNS)} that exists)",
    )  # fmt: skip
    parser.add_argument(
        "--input-format", choices=FORMATS, default="auto",
        help="format of the text files; auto decides by the name and the first lines of a file (default: auto)",
    )  # fmt: skip
    add_encoding(parser)


def add_encoding(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--encoding", metavar="NAME", help="encoding of the text files, such as cp949 or utf-16 (default: utf-8)"
    )


def reading_options(args: argparse.Namespace, keep: Sequence[str] = ()) -> ReadOptions:
    """Return how the command reads files of text."""
    return ReadOptions(column=args.column, keep=tuple(keep), input_format=args.input_format, encoding=args.encoding)


def add_layers(parser: argparse.ArgumentParser, *, default: str, choices: str) -> None:
    parser.add_argument(
        "--layers", metavar="LAYERS", default=default, help=f"layers to use: {choices} (default: {default})"
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", metavar="DEVICE", default="auto",
        help="device to compute on: auto (a GPU if there is one, else the CPU), cpu, cuda or cuda:1 (default: auto)",
    )  # fmt: skip


def add_precision(parser: argparse.ArgumentParser, choices: Sequence[str] = ("float32", "int8", "bfloat16")) -> None:
    notes = {"int8": "int8 (CPU only)", "bfloat16": "bfloat16 (GPU only)"}
    faster = " and ".join(notes[name] for name in choices if name in notes)
    parser.add_argument(
        "--precision",
        choices=choices,
        default="float32",
        help=f"number format to compute in; {faster} may be faster (default: float32)",
    )


def add_batch_size(parser: argparse.ArgumentParser, what: str = "sentences", *, default: int | None = None) -> None:
    text = default or "depends on the length of the sentences"
    parser.add_argument(
        "--batch-size", type=int, metavar="N", default=default,
        help=f"maximum number of {what} in a batch; affects only speed and memory (default: {text})",
    )  # fmt: skip


def add_threads(
    parser: argparse.ArgumentParser, *, default: int | None = None, otherwise: str = "all cores", note: str = ""
) -> None:
    parser.add_argument(
        "--threads", type=int, metavar="N", default=default,
        help=f"number of CPU threads per process{note} (default: {default or otherwise})",
    )  # fmt: skip


def add_workers(parser: argparse.ArgumentParser, note: str = "") -> None:
    parser.add_argument("--workers", type=int, metavar="N", default=1, help=f"number of processes{note} (default: 1)")


def add_recipe(parser: argparse.ArgumentParser, known: str, *, default: str | None, otherwise: str = "") -> None:
    """Add --recipe and --set; `known` lists the names of bundled recipes."""
    parser.add_argument(
        "--recipe", metavar="RECIPE", default=default,
        help=f"TOML file, or name of a bundled recipe: {known} (default: {default or otherwise})",
    )  # fmt: skip
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[],
        help="change a setting of the recipe, such as training.lr=0.1; may be repeated (default: no change)",
    )  # fmt: skip


def add_seed(parser: argparse.ArgumentParser, *, default: int) -> None:
    parser.add_argument(
        "--seed", type=int, metavar="N", default=default, help=f"seed of the random numbers (default: {default})"
    )


def add_tensorboard(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tensorboard", action="store_true", help="also write TensorBoard logs (needs the extra tensorboard)"
    )


def add_count(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "-k", "--count", type=int, metavar="N", default=10, help=f"number of {what} to print (default: 10)"
    )


def add_direction(parser: argparse.ArgumentParser, *, default: str | None = None, otherwise: str = "") -> None:
    parser.add_argument(
        "--direction", choices=("forward", "backward", "both"), default=default,
        help="what predicts a word: forward (the words before it), backward (those after it) or both "
        f"(default: {default or otherwise})",
    )  # fmt: skip


def add_force(parser: argparse.ArgumentParser, text: str = "replace the output if it exists") -> None:
    parser.add_argument("--force", action="store_true", help=text)


def add_quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quiet", "-q", action="store_true", help="do not show progress")


def add_json(parser: argparse.ArgumentParser, text: str = "print JSON instead of text") -> None:
    parser.add_argument("--json", action="store_true", help=text)


def parse_layers(text: str) -> str | int | list[float]:
    """Return the value of --layers as the library takes it: a name, an index, or the weights of a mix."""
    if "," in text:
        try:
            return [float(weight) for weight in text.split(",")]
        except ValueError:
            raise InputError(
                f"--layers {text}: the weights of a mix must be numbers with commas between them, such as 0.2,0.3,0.5"
            ) from None
    try:
        return int(text)
    except ValueError:
        return text


def choose_device(device: str, precision: str = "float32") -> str:
    """Return the device to compute on, with `auto` resolved: a GPU if there is one that computes in this precision."""
    if device == "cpu" or (device == "auto" and (precision == "int8" or not _may_have_gpu())):
        return "cpu"
    if device == "auto":
        try:
            import torch
        except ImportError:
            return "cpu"
        return "cuda" if torch.cuda.is_available() else "cpu"
    require_torch(f"--device {device}")
    import torch

    try:
        kind = torch.device(device).type
    except RuntimeError:
        raise InputError(f"--device {device}: unknown device. Use auto, cpu, cuda or cuda:1") from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise InputError(f"--device {device}: no CUDA GPU is available. Use --device auto or cpu")
    return device


def _may_have_gpu() -> bool:
    """Return whether the driver of a GPU is installed, which is known without waiting for torch."""
    import ctypes

    if Path("/dev/kfd").exists():  # of AMD
        return True
    try:
        ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return False
    return True


def check_at_least(option: str, value: int | None, minimum: int) -> None:
    if value is not None and value < minimum:
        raise InputError(f"{option} {value}: must be at least {minimum}")


def set_threads(threads: int | None) -> None:
    """Compute on a number of CPU threads from now on; None keeps the default, the number of cores."""
    check_at_least("--threads", threads, 1)
    if threads is not None:
        os.environ["OMP_NUM_THREADS"] = str(threads)  # for what is loaded from now on
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(threads)


def load_embedder(args: argparse.Namespace) -> Embedder:
    """Load the model that the command names, with its --options, --vocab, --language, --device and --threads."""
    from pyelmo.embed.embedder import load

    set_threads(args.threads)
    device = choose_device(args.device)
    return load(args.model, options=args.options, vocab=args.vocab, device=device, language=args.language)
