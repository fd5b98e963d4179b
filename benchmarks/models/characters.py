"""How often a text has the characters that normalisation changes, or could change.

python benchmarks/models/characters.py en-wikipedia.train.txt ko-wikipedia.train.txt --json characters.json
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

from pyelmo.provenance import machine, plain_command

KINDS = {
    "byte-order marks": "\ufeff",
    "zero-width spaces and word joiners": "\u200b\u2060",
    "soft hyphens": "\u00ad",
    "direction marks and invisible operators": "\u061c\u180e\u200e\u200f\u202a-\u202e\u2061-\u2064\u2066-\u206f",
    "zero-width joiners and non-joiners": "\u200c\u200d",
    "variation selectors": "\ufe00-\ufe0f\U000e0100-\U000e01ef",
    "no-break and wide spaces": "\u00a0\u2000-\u200a\u202f\u205f\u3000",
    "full-width letters and digits": "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a",
    "full-width punctuation": "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff5e",
    "half-width jamo": "\uffa0-\uffdc",
    "conjoining jamo": "\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff",
    "jamo as letters (U+3131 to U+3163)": "\u3131-\u3163",
    "ASCII letters and digits": "0-9A-Za-z",
    "Hangul syllables": "\uac00-\ud7a3",
}


def count(path: Path) -> dict[str, Any]:
    patterns = {kind: re.compile(f"[{characters}]+") for kind, characters in KINDS.items()}
    counts: Counter[str] = Counter(dict.fromkeys(["characters", "lines", "lines not in NFC", *KINDS], 0))
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            counts["characters"] += len(line)
            counts["lines"] += 1
            counts["lines not in NFC"] += not unicodedata.is_normalized("NFC", line)
            for kind, pattern in patterns.items():
                if kind.startswith("ASCII") or not line.isascii():
                    counts[kind] += sum(map(len, pattern.findall(line)))
    return dict(counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", metavar="TEXT", nargs="+", type=Path)
    parser.add_argument("--json", metavar="FILE", type=Path, required=True)
    args = parser.parse_args()
    command = plain_command("python benchmarks/models/characters.py", sys.argv[1:])
    facts = {"command": command, **machine(), "texts": {path.name: count(path) for path in args.texts}}
    args.json.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
