"""Draw the charts of the documentation from the figures in benchmarks/results/.

    python benchmarks/pictures.py -o docs/pictures

speed.svg             words per CPU second beside AllenNLP and MiniLM (embed_cpu.json, bundled_speed.json)
layers.svg            what each layer of en and ko knows (knows_en.json, knows_ko.json)
layers_of_tasks.svg   the layer weights that task networks learnt at their input (task_table1.json, task_ablations.json)
learning_perplexity.svg, learning_senses.svg    while en and ko were trained (train_en_2048.json, train_ko_2048.json)
en_word_senses.svg and all other en_*.svg and ko_*.svg    each probe of `elmo probe` (probe_en.json, probe_ko.json)
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.files import write_text
from pyelmo.plots import NAMESPACE, STYLE, Bar, Curve, Line, Shares, bars, curves, line_chart, share_grid
from pyelmo.probes import report

RESULTS = Path(__file__).parent / "results"


def read(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def speed() -> str:
    peers, bundled = read("embed_cpu")["sizes"], read("bundled_speed")["words_per_cpu_second"]
    names = {
        "allennlp": Bar("AllenNLP 2.10.1", 0, 1),
        "minilm": Bar("MiniLM-L6 (sentence-transformers)", 0, 4),
        "float32 cold": Bar("pyelmo, float32", 0, 0),
        "int8 cold": Bar("pyelmo, int8", 0, 0),
    }

    def group(figures: dict[str, float]) -> list[Bar]:
        return [Bar(bar.name, figures[key], bar.colour) for key, bar in names.items() if key in figures]

    own = {"minilm": bundled["MiniLM-L6"], "float32 cold": bundled["en float32"], "int8 cold": bundled["en int8"]}
    groups = {
        "The paper's size (4096/512)": group(peers["original"]["words_per_cpu_s"]),
        "The small model (1024/128)": group(peers["small"]["words_per_cpu_s"]),
        "The bundled en (2048/512)": group(own),
    }
    return bars(groups, "words per CPU second, one thread, empty word cache; each group is one run")


def layers() -> str:
    english, korean = read("knows_en")["figures"], read("knows_ko")["figures"]
    lines = [
        Line("en: parts of speech (EWT, accuracy)", english["pos"]["result"]["accuracy"]),
        Line("en: words with two senses (%)", english["senses"]["result"]["layers"]),
        Line("en: word senses (SemCor, F1)", english["wsd"]["result"]["f1"]),
        Line("ko: parts of speech (Kaist, accuracy)", korean["pos"]["result"]["accuracy"]),
        Line("ko: words with two senses (%)", korean["senses"]["result"]["layers"]),
    ]
    return standalone(line_chart(lines, {}, ""))


def standalone(chart: str) -> str:
    """Return a drawing of a page as a file of its own."""
    return chart.replace("<svg ", f"<svg {NAMESPACE} ", 1).replace(">", f">{STYLE}", 1)


def probes(language: str) -> dict[str, str]:
    """Return the name and the chart of each probe."""
    charts = {}
    for table in report.tables(read(f"probe_{language}")["figures"]):
        name = re.sub(r"\W+", "_", f"{language} {table.title}".lower())
        charts[name] = standalone(line_chart(table.lines, table.levels, table.section.unit))
    return charts


def layers_of_tasks() -> str:
    sets = {**read("task_table1")["sets"], **read("task_ablations")["sets"]}
    names = {
        "squad": "question answering, SQuAD",
        "lingnli": "entailment, LingNLI",
        "srl": "semantic roles, PropBank-EWT",
        "ontogum": "coreference, OntoGUM",
        "litbank": "coreference, LitBank",
        "sst5": "sentiment, SST-5",
        "nsmc": "sentiment, NSMC (Korean)",
    }
    rows = []
    for key, name in names.items():
        run = next(row for row in sets[key] if row["run"] in (f"{key}-en", f"{key}-ko"))
        shares = np.mean([seed["layers"]["input"] for seed in run["each_seed"]], axis=0)
        rows.append(Shares(name, shares.tolist()))
    return share_grid(rows)


def learning_perplexity() -> str:
    return curves(
        [
            learning("en", "Wikipedia", lambda point: point["perplexity 100000"]["wikipedia"], 0),
            learning("en", "books", lambda point: point["perplexity 100000"]["books"], 1),
            learning("en", "tweets", lambda point: point["perplexity 100000"]["tweets"], 2),
            learning("ko", "Wikipedia", lambda point: point["perplexity 100000"]["wikipedia"], 3),
            learning("ko", "film reviews", lambda point: point["perplexity 100000"]["reviews"], 4),
        ],
        "million words or morphemes",
        "perplexity, held-out text, 100,000 words",
    )


def learning_senses() -> str:
    return curves(
        [
            learning("en", "words with two senses, top layer (%)", lambda point: point["senses"][-1], 0),
            learning("en", "word senses, top layer (SemCor, F1)", lambda point: point["wsd"]["f1"][-1], 1),
            learning("ko", "words with two senses, top layer (%)", lambda point: point["senses"][-1], 2),
        ],
        "million words or morphemes",
        "what the top layer knows",
    )


def learning(language: str, name: str, value: Callable[[dict[str, Any]], float], colour: int) -> Curve:
    points = read(f"train_{language}_2048")["curve"]
    return Curve(f"{language}: {name}", [(round(point["words"] / 1e6), value(point)) for point in points], colour)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="folder for the drawings")
    args = parser.parse_args()
    drawings = {
        draw.__name__: draw() for draw in (speed, layers, layers_of_tasks, learning_perplexity, learning_senses)
    }
    for name, drawing in {**drawings, **probes("en"), **probes("ko")}.items():
        write_text(args.output / f"{name}.svg", drawing + "\n")


if __name__ == "__main__":
    main()
