"""Every probe of a language, with the labelled sets it needs wherever they lie below some folders.

wsd      SemCor 3.0, ALL.data.xml of the unified test sets, WordNet 3.0's index.sense        English
pos      UD English EWT; UD Korean Kaist and GSD                                             English, Korean
wic      train, dev and test of WiC                                                          English
scws     scws/ratings.txt                                                                    English
senses   the package's own list of words with two senses                                     English, Korean
typos    the test part of the first treebank, or the sentences of that list                  English, Korean
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from pyelmo.arrays import Float32Array
from pyelmo.encoders.base import Encoder, NamedEncoder
from pyelmo.errors import InputError, NotFoundError
from pyelmo.files import sha256
from pyelmo.probes import pos, scws, senses, typos, wic, wsd, wsd_data
from pyelmo.probes.figures import Measurement

PROBES = {"en": ("wsd", "pos", "wic", "scws", "senses", "typos"), "ko": ("pos", "senses", "typos")}
TREEBANKS = {
    "en": {"UD English EWT": "en_ewt-ud-"},
    "ko": {"UD Korean Kaist": "ko_kaist-ud-", "UD Korean GSD": "ko_gsd-ud-"},
}
Figures = dict[str, Any]


def look_for(folders: Sequence[Path], pattern: str, what: str) -> Path:
    """The first file below the folders that fits a pattern."""
    for folder in folders:
        for path in sorted(folder.glob(pattern)):
            return path
    where = f"below {', '.join(map(str, folders))}" if folders else "because no folder was named (--data)"
    raise NotFoundError(f"{what}: no {pattern.removeprefix('**/')} {where}")


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
    """What one probe measures of an encoder; sets that are missing are noticed now.

    `control` adds the control task to the parts of speech, `held_out` the held-out list to the words with two senses.
    """
    if probe not in PROBES.get(language, ()):
        raise InputError(f"probe {probe!r} is none of {', '.join(PROBES.get(language, ()))}, which {language} has")
    facts, look = encoder.facts, functools.partial(look_for, folders)

    def measurement(key: str, find: Callable[..., Figures], *arguments: Any, **of: Any) -> Measurement:
        return Measurement(key, {**facts, **of}, functools.partial(find, encoder, *arguments))

    if probe == "wsd":
        semcor = look("**/brown1/tagfiles", "SemCor 3.0").parents[1]
        test, index = look("**/ALL.data.xml", "the unified test sets"), look("**/index.sense", "WordNet 3.0")
        return [measurement("wsd", find_wsd, semcor, test, index)]
    if probe == "pos":
        found = []
        for number, (treebank, start) in enumerate(TREEBANKS[language].items()):
            try:
                files = [look(f"**/{start}{part}.conllu", treebank) for part in ("train", "test")]
            except NotFoundError:
                if number == 0:  # the others are extra
                    raise
                continue
            key = "pos" if number == 0 else f"pos {treebank}"
            of = {"treebank": treebank, **({"control": True} if control else {})}
            found.append(measurement(key, find_pos, *files, control, **of))
        return found
    if probe == "wic":
        return [measurement("wic", find_wic, look("**/train/train.data.txt", "WiC").parents[1])]
    if probe == "scws":
        return [measurement("scws", find_scws, look("**/[sS][cC][wW][sS]/ratings.txt", "SCWS"))]
    if probe == "senses":
        kinds = {"senses": False, **({"senses held out": True} if held_out else {})}
        lists = {key: sha256(senses.list_path(language, held_out=kind)) for key, kind in kinds.items()}
        return [measurement(key, find_senses, language, kind, list=lists[key]) for key, kind in kinds.items()]
    treebank, start = next(iter(TREEBANKS[language].items()))
    try:
        text: Path | None = look(f"**/{start}test.conllu", treebank)
    except NotFoundError:
        text, treebank = None, "the list of words with two senses"
    return [measurement("typos", find_typos, language, text, seed, text=treebank, seed=seed)]


def _shown(embed: Encoder) -> Encoder:
    """The same encoder, with a bar."""

    def encoder(sentences: Sequence[list[str]]) -> Iterator[Float32Array]:
        yield from tqdm(embed(sentences), total=len(sentences), unit=" sentences", desc="  embedding")

    return encoder


def find_wsd(encoder: NamedEncoder, semcor: Path, test: Path, index: Path) -> Figures:
    read = wsd_data.read_senses
    return _named(encoder, wsd.evaluate(_shown(encoder), read(semcor), read(test), wsd_data.read_first_senses(index)))


def find_pos(encoder: NamedEncoder, train: Path, test: Path, control: bool) -> Figures:
    parts = pos.read_conllu(train), pos.read_conllu(test)
    return _named(encoder, pos.evaluate(_shown(encoder), *parts, control=control, progress=True))


def find_wic(encoder: NamedEncoder, folder: Path) -> Figures:
    parts = [wic.read_wic(folder / part / f"{part}.data.txt") for part in wic.PAIRS]
    return _named(encoder, wic.evaluate(_shown(encoder), *parts))


def find_scws(encoder: NamedEncoder, path: Path) -> Figures:
    return _named(encoder, scws.evaluate(_shown(encoder), scws.read_scws(path)))


def find_senses(encoder: NamedEncoder, language: str, held_out: bool) -> Figures:
    occurrences = senses.listed(language, held_out=held_out, split=encoder.loaded.language)
    return _named(encoder, senses.evaluate(_shown(encoder.embed_own_tokens), occurrences))


def find_typos(encoder: NamedEncoder, language: str, text: Path | None, seed: int) -> Figures:
    given = pos.read_conllu(text) if text else senses.listed(language)
    made = typos.misspell([sentence.words for sentence in given], seed=seed)
    return _named(encoder, typos.evaluate(_shown(encoder), made, knows=encoder.loaded.knows))


def _named(encoder: NamedEncoder, result: Any) -> Figures:
    return {"layer_names": list(encoder.layers), **asdict(result)}
