"""Speed of the bundled `en` on one CPU thread, beside an earlier model and MiniLM-L6, in one run.

    python benchmarks/speed/bundled.py --text FILE --minilm PYTHON [--models first=FOLDER ...] [--json FILE]

FILE and `--minilm` are those of embed_cpu.py. Speeds are words a CPU second with a cold word cache, the median of the
rounds; all contenders take turns. pyelmo returns every layer of every token, MiniLM one vector a sentence.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from embed_cpu import PRECISIONS, ROUND_SECONDS, Process, choose_sentences

from pyelmo.formats.bundled import BUNDLED
from pyelmo.provenance import machine, plain_command


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--minilm", metavar="PYTHON", required=True, help="the Python of MiniLM's environment")
    parser.add_argument("--models", nargs="*", default=[], metavar="NAME=FOLDER", help="other models of pyelmo")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=512)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    sentences = choose_sentences(args.text, args.sentences)
    models = {"en": str(BUNDLED / "en"), **dict(one.split("=", 1) for one in args.models)}
    with tempfile.TemporaryDirectory() as temporary:
        contenders = {"MiniLM-L6": Process(args.minilm, "minilm")}
        for name, folder in models.items():
            for precision in PRECISIONS:  # a contender reads the precision from the name of its folder
                link = Path(temporary, name, precision)
                link.parent.mkdir(exist_ok=True)
                link.symlink_to(Path(folder).resolve())
                contenders[f"{name} {precision}"] = Process(sys.executable, "pyelmo", link)
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(args.rounds):
            for name, process in contenders.items():
                seconds[name].append(process.ask("passes", sentences=sentences, cold=True, seconds=ROUND_SECONDS))
        for process in contenders.values():
            process.close()
    words = sum(map(len, sentences))
    speeds = {name: words / statistics.median(values) for name, values in seconds.items()}
    for name, speed in speeds.items():
        print(f"{name:20} {speed:8,.0f} words/CPU s   {speed / speeds['MiniLM-L6']:5.2f} x MiniLM-L6")
    if args.json:
        result = {"words_per_cpu_second": speeds, "rounds": seconds, "words": words}
        args.json.write_text(
            json.dumps(
                {
                    **result,
                    "command": plain_command("python benchmarks/speed/bundled.py", sys.argv[1:]),
                    "machine": machine(),
                },
                indent=1,
            )
            + "\n"
        )


if __name__ == "__main__":
    main()
