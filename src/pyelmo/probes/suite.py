"""All probes of a language, and the search for their data sets below some folders.

wsd      SemCor 3.0, ALL.data.xml of the unified test sets, WordNet 3.0's index.sense        English
pos      UD English EWT; UD Korean Kaist and GSD; or another UD treebank                     English, Korean
wic      train, dev and test set of WiC                                                         English
scws     scws/ratings.txt                                                                    English
senses   the bundled list of words with two senses                                           English, Korean
phrases  the bundled list of short phrases                                                   English, Korean
typos    the test set of the first treebank, or the sentences of that list                   English, Korean
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from pyelmo.arrays import Float32Array
from pyelmo.encoders.base import Encoder, NamedEncoder
from pyelmo.errors import InputError, NotFoundError
from pyelmo.files import sha256
from pyelmo.probes import phrases, pos, scws, senses, typos, wic, wsd, wsd_data
from pyelmo.probes.figures import Measurement

log = logging.getLogger("pyelmo")
PROBES = {
    "en": ("wsd", "pos", "wic", "scws", "senses", "phrases", "typos"),
    "ko": ("pos", "senses", "phrases", "typos"),
}
TREEBANKS = {
    "en": {"UD English EWT": "en_ewt-ud-"},
    "ko": {"UD Korean Kaist": "ko_kaist-ud-", "UD Korean GSD": "ko_gsd-ud-"},
}
Figures = dict[str, Any]


def look_for(folders: Sequence[Path], pattern: str, what: str) -> Path:
    """Return the first file below the folders that matches a pattern."""
    for folder in folders:
        for path in sorted(folder.glob(pattern)):
            return path
    name = pattern.removeprefix("**/")
    if not folders:
        raise NotFoundError(f"{what}: the probe needs {name}. Name the folder that contains it with --data.")
    raise NotFoundError(f"{what}: no {name} below {', '.join(map(str, folders))}. Name its folder with --data.")


def plan(
    probe: str,
    encoder: NamedEncoder,
    language: str,
    folders: Sequence[Path],
    *,
    control: bool = True,
    held_out: bool = False,
    seed: int = 0,
) -> list[Measurement]:
    """Return the measurements of a probe, after checking that their data sets exist.

    Args:
        probe: The name of the probe.
        encoder: The encoder to measure.
        language: The language of the data sets.
        folders: The folders to search for data sets.
        control: Add the control task to the part-of-speech probe.
        held_out: Add the held-out list to the words with two senses.
        seed: The seed of the misspellings.
    """
    known = PROBES.get(language, ())
    if probe not in known:
        raise InputError(f"there is no probe {probe!r} for the language {language}. Choose one of {', '.join(known)}.")
    facts, look = encoder.facts, functools.partial(look_for, folders)

    def measurement(key: str, find: Callable[..., Figures], *arguments: Any, **of: Any) -> Measurement:
        return Measurement(key, {**facts, **of}, functools.partial(find, encoder, *arguments))

    if probe == "wsd":
        semcor = look("**/brown1/tagfiles", "SemCor 3.0").parents[1]
        test, index = look("**/ALL.data.xml", "the unified test sets"), look("**/index.sense", "WordNet 3.0")
        return [measurement("wsd", find_wsd, semcor, test, index)]
    if probe == "pos":
        measurements: list[Measurement] = []
        first = next(iter(TREEBANKS[language]))
        for treebank, files, facts_of in find_treebanks(language, folders):
            key = (
                f"pos {treebank}" if measurements or (treebank != first and treebank in TREEBANKS[language]) else "pos"
            )
            of = {"treebank": treebank, **({"control": True} if control else {}), **facts_of}
            measurements.append(measurement(key, find_pos, *files, control, **of))
        return measurements
    if probe == "wic":
        return [measurement("wic", find_wic, look("**/train/train.data.txt", "WiC").parents[1])]
    if probe == "scws":
        return [measurement("scws", find_scws, look("**/[sS][cC][wW][sS]/ratings.txt", "SCWS"))]
    if probe == "senses":
        kinds = {"senses": False, **({"senses held out": True} if held_out else {})}
        lists = {key: sha256(senses.list_path(language, held_out=kind)) for key, kind in kinds.items()}
        return [measurement(key, find_senses, language, kind, list=lists[key]) for key, kind in kinds.items()]
    if probe == "phrases":
        return [measurement("phrases", find_phrases, language, list=sha256(phrases.list_path(language)))]
    treebank, start = next(iter(TREEBANKS[language].items()))
    try:
        text: Path | None = look(f"**/{start}test.conllu", treebank)
    except NotFoundError:
        text, treebank = None, "the list of words with two senses"
    return [measurement("typos", find_typos, language, text, seed, text=treebank, seed=seed)]


def find_treebanks(language: str, folders: Sequence[Path]) -> list[tuple[str, list[Path], dict[str, Any]]]:
    """Return the treebanks of a language below the folders: names, train and test files, and what is special.

    If none of the usual treebanks is there, any other one is taken, of the language if possible, with a warning.
    """
    names = ("train", "test")
    usual = []
    for treebank, start in TREEBANKS[language].items():
        with contextlib.suppress(NotFoundError):
            files = [look_for(folders, f"**/{start}{name}.conllu", treebank) for name in names]
            missing = [pos.count_missing(file) for file in files]
            usual.append((treebank, files, {"missing_sentences": missing} if any(missing) else {}))
    if usual:
        return usual
    wanted, start = next(iter(TREEBANKS[language].items()))
    for pattern in (f"{language}_*-ud-train.conllu", "*-ud-train.conllu"):
        for train in sorted(path for folder in folders for path in folder.glob(f"**/{pattern}")):
            test = train.with_name(train.name.replace("-ud-train", "-ud-test"))
            if test.is_file():
                treebank = f"UD {train.name.partition('-ud-')[0]}"
                log.warning("%s is not there, %s is used. Its figures do not compare with others.", wanted, treebank)
                return [(treebank, [train, test], {"files": {path.name: sha256(path) for path in (train, test)}})]
    look_for(folders, f"**/{start}train.conllu", wanted)  # raises the error that names both files
    look_for(folders, f"**/{start}test.conllu", wanted)
    return []


def _with_bar(embed: Encoder) -> Encoder:
    """Return the same encoder with a progress bar."""

    def encoder(sentences: Sequence[list[str]], /) -> Iterator[Float32Array]:
        yield from tqdm(embed(sentences), total=len(sentences), unit=" sentences", desc="  embedding")

    return encoder


def find_wsd(encoder: NamedEncoder, semcor: Path, test: Path, index: Path) -> Figures:
    train_set, test_set = wsd_data.read_senses(semcor), wsd_data.read_senses(test)
    first_senses = wsd_data.read_first_senses(index)
    return _named(encoder, wsd.evaluate(_with_bar(encoder), train_set, test_set, first_senses))


def find_pos(encoder: NamedEncoder, train: Path, test: Path, control: bool) -> Figures:
    train_set, test_set = pos.read_conllu(train), pos.read_conllu(test)
    return _named(encoder, pos.evaluate(_with_bar(encoder), train_set, test_set, control=control, progress=True))


def find_wic(encoder: NamedEncoder, folder: Path) -> Figures:
    train, dev, test = (wic.read_wic(folder / name / f"{name}.data.txt") for name in wic.PAIRS)
    return _named(encoder, wic.evaluate(_with_bar(encoder), train, dev, test, encoder.loaded.substitutes))


def find_scws(encoder: NamedEncoder, path: Path) -> Figures:
    return _named(encoder, scws.evaluate(_with_bar(encoder), scws.read_scws(path)))


def find_senses(encoder: NamedEncoder, language: str, held_out: bool) -> Figures:
    occurrences = senses.listed(language, held_out=held_out, split=encoder.loaded.language)
    return _named(
        encoder, senses.evaluate(_with_bar(encoder.embed_own_tokens), occurrences, encoder.loaded.substitutes)
    )


def find_phrases(encoder: NamedEncoder, language: str) -> Figures:
    triples = phrases.read_triples(phrases.list_path(language), encoder.loaded.language or language)
    return _named(encoder, phrases.evaluate(_with_bar(encoder.embed_own_tokens), triples, encoder.loaded.substitutes))


def find_typos(encoder: NamedEncoder, language: str, text: Path | None, seed: int) -> Figures:
    sentences = pos.read_conllu(text) if text else senses.listed(language)
    misspelt = typos.misspell([sentence.words for sentence in sentences], seed=seed)
    return _named(encoder, typos.evaluate(_with_bar(encoder), misspelt, knows=encoder.loaded.knows))


def _named(encoder: NamedEncoder, result: Any) -> Figures:
    return {"layer_names": list(encoder.layers), **asdict(result)}
