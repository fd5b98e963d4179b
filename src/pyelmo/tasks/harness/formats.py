"""The file formats of each task, for readers, help texts and errors; no torch is needed to list them."""

from __future__ import annotations

from pathlib import Path

from pyelmo.text.streams import bare_suffix

# The first format is that of files whose name says nothing.
FORMATS = {
    "ner": {
        "columns": "one word per line, labels in another column (data.word, data.label, data.scheme, data.comment)",
        "table": "JSON Lines or Parquet with lists of words and of labels in each row (--column tokens --label tags)",
        "conllu": "CoNLL-U with the labels in MISC, as NER=B-PER (--label NER), or in a column (--label upos or xpos)",
        "conll2003": "CoNLL-2003",
        "klue": "KLUE, one character per line",
        "naver": "Naver, one sentence per line",
    },
    "srl": {
        "propbank": "PropBank with words (.gold_conll)",
        "conll2012": "CoNLL-2012",
        "conll2005": "CoNLL-2005 (name X.words; X.props must be beside it)",
    },
    "sentiment": {
        "sst": "trees of the Stanford Sentiment Treebank (data.binary, data.phrases)",
        "table": "csv, tsv, JSON Lines or Parquet with any texts and labels (--column text --label label)",
        "nsmc": "NSMC",
    },
    "nli": {
        "jsonl": "JSON Lines with premise, hypothesis and label (SNLI, MultiNLI, LingNLI)",
        "json": "a JSON list of the same (KLUE-NLI)",
        "tsv": "the same in columns (SICK, KorNLI)",
        "csv": "the same in columns (e-SNLI)",
        "lines": "s1.X, s2.X and labels.X (name s1.X)",
    },
    "qa": {"squad": "SQuAD 1.1, scored by words", "korquad": "KorQuAD 1.0, scored by characters"},
    "coref": {
        "conll2012": "CoNLL-2012: a file, a folder, or a list of documents (data.folder)",
        "litbank": "LitBank, likewise",
        "ontogum": "OntoGUM, likewise",
    },
}
_TABLES = {".jsonl": "table", ".ndjson": "table", ".parquet": "table"}
_BY_SUFFIX = {
    "ner": {".conllu": "conllu", **_TABLES},
    "sentiment": {".csv": "table", ".tsv": "table", **_TABLES},
    "nli": {".json": "json", ".tsv": "tsv", ".csv": "csv"},
}


def format_by_name(task: str, path: str | Path) -> str:
    """Return the format that the name of a file says, also with .gz or .zst after it, or the usual one of the task."""
    usual = next(iter(FORMATS[task]))
    return _BY_SUFFIX.get(task, {}).get(bare_suffix(path), usual)
