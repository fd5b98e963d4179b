"""Labelled data of all tasks, data of the probes, recipes, plans, and text to embed or to prepare."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from fuzz.formats import SENTENCES, Command, Format
from task_support import PAIRS, SST, sentences

NER = sentences(8, 1)
CONLL2003 = (
    "-DOCSTART- -X- -X- O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\nGerman JJ I-NP I-MISC\n\nPeter NNP I-NP I-PER\n\n"
)
KLUE = "## klue-1\t<경찰:OG>은 오늘\n경\tB-OG\n찰\tI-OG\n은\tO\n \tO\n오\tO\n늘\tO\n\n## klue-2\t나\n나\tO\n\n"
WORDS = '{"tokens": ["Ann", "Lee", "ran"], "tags": ["B-PER", "I-PER", "O"]}\n{"tokens": ["Rome"], "tags": ["B-LOC"]}\n'
LABELLED_TREES = "# text = Ann's\n1-2\tAnn's{0}\n1\tAnn\t_\tPROPN\tNNP\t_\t_\t_\t_\tNER=B-PER\n2\t's{0}\n\n".format(
    "\t_" * 8
)
NAVER = "송인영은 5년 간\tPER-B DAT-B O\n나 간다\tO O\n"
SRL = "".join(
    f"d 0 0 {who} N * - - (ARG0*)\nd 0 1 {verb} V * x x.01 (V*)\nd 0 2 {what} N * - - (ARG1*)\n\n"
    for who in ("Ann", "Bob") for verb in ("saw", "ate") for what in ("fish", "trees")
)  # fmt: skip
COREF = "".join(
    f"""#begin document (bc/cctv/00/cctv_{number}); part 000
bc/cctv/00/cctv_0000 0 0 John NNP (TOP(S(NP*) - - - Ann (PERSON) (ARG0*) (3)
bc/cctv/00/cctv_0000 0 1 saw VBD (VP* see 1 1 Ann * (V*) -
bc/cctv/00/cctv_0000 0 2 his PRP$ (NP* - - - Ann * (ARG1* (4|(3)
bc/cctv/00/cctv_0000 0 3 mother NN *)) - - - Ann * *) 4)

bc/cctv/00/cctv_0000 0 0 She PRP (TOP(S(NP*)) - - - - * (4)
bc/cctv/00/cctv_0000 0 1 ran VB * - - - - * -

#end document
""" for number in (1, 2)
)  # fmt: skip
LITBANK = "#begin document (12_a_brat); part 0\n" + "".join(
    f"12_a_brat\t0\t{number}\t{word}{'	_' * 8}\t{mention}\n"
    for number, (word, mention) in enumerate([("Red", "(0"), ("Death", "(1)|0)"), ("ran", "_"), ("it", "(0)")])
) + "#end document\n"  # fmt: skip
ONTOGUM = "# begin document \n0\tThe\t(2\n1\tking\t2)\n2\tran\t_\n3\t.\t_\n4\tHe\t(5(2)\n5\tand\t_\n6\tshe\t5)\n# end document\n"
SQUAD = json.dumps({"version": "1.1", "data": [{"title": "x", "paragraphs": [
    {"context": f"{who} lives in {where}.", "qas": [
        {"id": f"{who}1", "question": "Who lives there?", "answers": [{"text": who, "answer_start": 0}]},
        {"id": f"{who}2", "question": "Where is the house?", "answers": [{"text": where, "answer_start": 13}]},
    ]} for who, where in (("Ann", "Paris"), ("Bob", "New York"), ("Sue", "Seoul"))
]}]})  # fmt: skip
NLI_TEXTS = [("A man sleeps.", "He rests.", "entailment"), ("A dog", 'It said "no"', "neutral")]
TASK_DATA = {
    "ner": ("ner.conll", NER), "srl": ("srl.txt", SRL), "sentiment": ("sst.txt", SST), "nli": ("nli.jsonl", PAIRS),
    "qa": ("qa.json", SQUAD), "coref": ("coref.v4_gold_conll", COREF),
}  # fmt: skip
# The variants of labelled data: the task, its settings, the file that is named, and all files.
LABELLED: dict[str, tuple[str, tuple[str, ...], str, dict[str, str]]] = {
    "columns": ("ner", (), "a.conll", {"a.conll": NER}),
    "iob1": ("ner", ("data.scheme=iob1", "data.word=0", "data.label=1"), "a.conll", {"a.conll": NER}),
    "conll2003": ("ner", ("data.format=conll2003",), "a.txt", {"a.txt": CONLL2003}),
    "klue": ("ner", ("data.format=klue", "data.language=ko"), "a.tsv", {"a.tsv": KLUE}),
    "naver": ("ner", ("data.format=naver", "data.language=ko"), "a.txt", {"a.txt": NAVER}),
    "words": ("ner", ("data.format=table",), "a.jsonl", {"a.jsonl": WORDS}),
    "conllu": ("ner", ("data.format=conllu",), "a.conllu", {"a.conllu": LABELLED_TREES}),
    "table": ("sentiment", ("data.format=table",), "a.csv", {"a.csv": 'text,label\n"A film, good.",1\nDull.,bad\n'}),
    "jsonl": ("nli", (), "a.jsonl", {"a.jsonl": PAIRS}),
    "json": ("nli", ("data.format=json",), "a.json", {"a.json": json.dumps([json.loads(line) for line in PAIRS.splitlines()])}),
    "tsv": ("nli", ("data.format=tsv",), "a.tsv", {"a.tsv": "sentence1\tsentence2\tgold_label\n" + "".join("\t".join(each) + "\n" for each in NLI_TEXTS)}),
    "csv": ("nli", ("data.format=csv",), "a.csv", {"a.csv": 'pairID,gold_label,Sentence1,Sentence2,Why\n1,entailment,A man.,He rests.,"so, it is"\n2,neutral,A dog,"It ""no""",\n'}),
    "lines": ("nli", ("data.format=lines",), "s1.x", {f"{name}.x": "\n".join(column) + "\n" for name, column in zip(("s1", "s2", "labels"), zip(*NLI_TEXTS, strict=True), strict=True)}),
    "sst": ("sentiment", (), "a.txt", {"a.txt": SST}),
    "phrases": ("sentiment", ("data.phrases=true", "data.binary=true"), "a.txt", {"a.txt": SST}),
    "nsmc": ("sentiment", ("data.format=nsmc", "data.language=ko"), "a.txt", {"a.txt": "id\tdocument\tlabel\n1\t재밌다\t1\n2\t별로\t0\n3\t나쁘다\t0\n"}),
    "squad": ("qa", (), "a.json", {"a.json": SQUAD}),
    "korquad": ("qa", ("data.format=korquad", "data.language=ko"), "a.json", {"a.json": SQUAD}),
    "conll2012": ("coref", (), "a.v4_gold_conll", {"a.v4_gold_conll": COREF}),
    "litbank": ("coref", ("data.format=litbank",), "a.ids", {"a.ids": "12_a.tsv\n12_a.tsv\n", "12_a.conll": LITBANK}),
    "ontogum": ("coref", ("data.format=ontogum",), "GUM_news_x.conll", {"GUM_news_x.conll": ONTOGUM * 2}),
    "propbank": ("srl", (), "a.gold_conll", {"a.gold_conll": SRL}),
    "srl2012": ("srl", ("data.format=conll2012",), "a.gold_conll", {"a.gold_conll": COREF}),
    "srl2005": ("srl", ("data.format=conll2005",), "a.words", {
        "a.words": "Ann N\nsaw V\nfish N\n\n" * 2, "a.props": "-  (A0*)\nsee  (V*)\n-  (A1*)\n\n" * 2}),
}  # fmt: skip
TASK_FORMATS = {
    "ner-data": ("columns", "iob1", "conll2003", "klue", "naver", "words", "conllu"),
    "nli-data": ("jsonl", "json", "tsv", "csv", "lines"),
    "sentiment-data": ("sst", "phrases", "nsmc", "table"),
    "qa-data": ("squad", "korquad"),
    "coref-data": ("conll2012", "litbank", "ontogum"),
    "srl-data": ("propbank", "srl2012", "srl2005"),
}


def _make_labelled(variants: tuple[str, ...]):
    def make(folder: Path, shared: Path) -> None:
        for variant in variants:
            (folder / variant).mkdir(parents=True)
            for name, text in LABELLED[variant][3].items():
                (folder / variant / name).write_text(text, "utf-8")

    return make


def _read_labelled(folder: Path) -> None:
    from pyelmo.recipes import read_settings
    from pyelmo.tasks.harness.task import find_task, read_examples

    name, changes, file, _ = LABELLED[folder.name]
    task = find_task(name)
    settings = read_settings(task.recipe, name, ["data.language=en", *changes], group="task").data
    examples = read_examples(task, folder / file, settings)
    vocabularies = task.build_vocabularies(examples)
    read_examples(task, folder / file, settings, vocabularies)


def _labelled_commands(folder: Path, shared: Path) -> list[Command]:
    task, changes, file, _ = LABELLED[folder.name]
    data = str(folder / file)
    settings = [part for change in changes for part in ("--set", change)]
    return [
        [
            "task",
            "train",
            task,
            "--data",
            data,
            data,
            "--encoder",
            "none",
            "-o",
            f"{folder}-run",
            "--seeds",
            "0",
            "-q",
            *settings,
        ]
    ]


# --- probes ----------------------------------------------------------------------------------------------------------

SEMCOR = """<contextfile concordance=brown>
<context filename=br-a01 paras=yes>
<p pnum=1>
<s snum=1>
<wf cmd=ignore rdf= pos=DT>The</wf>
<wf cmd=done pos=NN lemma=river_bank wnsn=1 lexsn=1:17:01::>river_bank</wf>
<wf cmd=done pos=VB lemma=establish wnsn=6;2 lexsn=2:35:00::;2:36:00::>rose</wf>
<punc>``</punc>
</s>
</p>
</context>
</contextfile>
"""
UNIFIED = """<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en" source="tiny">
<text id="one.d000">
<sentence id="one.d000.s000">
<wf lemma="the" pos="DET">The</wf>
<instance id="one.d000.s000.t000" lemma="Bank" pos="NOUN">bank&apos;s side</instance>
<wf lemma="." pos=".">-LRB-</wf>
</sentence>
</text>
</corpus>
"""
TREEBANK = "# sent_id = 1\n" + "".join(
    f"{number}\t{word}\t_\t{tag}\t_\t_\t_\t_\t_\t_\n"
    for number, (word, tag) in enumerate([("Ann", "PROPN"), ("runs", "VERB"), ("fast", "ADV")], 1)
) + "\n"  # fmt: skip
WIC = "bank\tN\t1-0\tThe bank .\tBanks lend .\ngo\tV\t0-2\tGo on .\tThey will go\n"
RATED = "1\tbank\tn\tshore\tn\tthe <b> bank </b> of\ta <b> shore </b>\t4.5\t" + "\t".join(["4", "5"] * 5) + "\n"
SENSES = "".join(
    f"bank\t{sense}\t{text}\n" for sense, text in [
        ("river", "The *bank* of a river ."), ("river", "A green *bank* there"), ("money", "My *bank* account"),
        ("money", "He robbed a *bank* ."),
    ]
)  # fmt: skip
PROBE_FILES = {
    "wsd": {"semcor/brown1/tagfiles/br-a01": SEMCOR, "ALL.data.xml": UNIFIED, "index.sense": "bank%1:17:01:: 08420278 1 20\n",
            "ALL.gold.key.txt": "one.d000.s000.t000 bank%1:17:01::\n"},
    "pos": {f"en_ewt-ud-{name}.conllu": TREEBANK * 2 for name in ("train", "dev", "test")},
    "wic": {f"{name}/{name}.{kind}.txt": text for name in ("train", "dev", "test") for kind, text in (("data", WIC), ("gold", "T\nF\n"))},
    "scws": {"scws/ratings.txt": RATED * 2},
    "senses": {"list.tsv": SENSES},
    "figures": {"figures.json": ""},
}  # fmt: skip


def _make_probes(folder: Path, shared: Path) -> None:
    from pyelmo.cli import main

    for variant, files in PROBE_FILES.items():
        for name, text in files.items():
            path = folder / variant / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    (folder / "figures" / "figures.json").unlink()
    main(
        [
            "probe",
            "senses",
            "--encoders",
            str(shared / "vectors.txt"),
            "-o",
            str(folder / "figures"),
            "--language",
            "en",
        ]
    )


def _accept_small_sets() -> None:
    """Forget how many examples the published data sets have, so that probes run on the samples."""
    from pyelmo.probes import pos, scws, wic, wsd_data

    pos.SENTENCES, scws.PAIRS, wsd_data.SEMCOR_WORDS = {}, None, None
    wic.PAIRS = dict.fromkeys(wic.PAIRS)
    wsd_data.UNIFIED_WORDS = {}


def _read_probe(folder: Path) -> None:
    from pyelmo.probes import figures, pos, scws, senses, wic, wsd_data

    _accept_small_sets()
    if folder.name == "wsd":
        wsd_data.read_semcor(folder / "semcor")
        wsd_data.read_unified(folder / "ALL.data.xml")
        wsd_data.read_first_senses(folder / "index.sense")
    elif folder.name == "pos":
        for name in ("train", "test"):
            pos.read_conllu(folder / f"en_ewt-ud-{name}.conllu")
    elif folder.name == "wic":
        for name in ("train", "dev", "test"):
            wic.read_wic(folder / name / f"{name}.data.txt")
    elif folder.name == "scws":
        scws.read_scws(folder / "scws" / "ratings.txt")
    elif folder.name == "senses":
        senses.read_occurrences(folder / "list.tsv", "en")
    else:
        figures.read(folder / "figures.json")


def _probe_commands(folder: Path, shared: Path) -> list[Command]:
    encoder = ["--encoders", str(shared / "vectors.txt"), "--language", "en"]
    if folder.name in ("figures", "senses"):
        return [["probe", "senses", *encoder, "-o", str(folder)]]
    return [["probe", folder.name, *encoder, "--data", str(folder), "--no-control"]]


# --- recipes and plans -----------------------------------------------------------------------------------------------

PLAN = """[[set]]
name = "ner"
task = "ner"
data = ["ner.conll", "ner.conll"]
vectors = "vectors.txt"
seeds = 1
[[set.run]]
name = "glove"
encoder = "none"
[[set.run]]
name = "en"
fractions = [0.1, 0.5]
lambda = 0.1
set = ["training.batch=40"]
"""


def _make_recipes(folder: Path, shared: Path) -> None:
    from pyelmo.recipes import RECIPES

    for group, names in {"pretrain": ("en", "tiny-cpu"), "task": ("ner", "qa", "coref")}.items():
        for name in names:
            variant = folder / f"{group}-{name}"
            variant.mkdir(parents=True)
            (variant / "recipe.toml").write_bytes((RECIPES / group / f"{name}.toml").read_bytes())


def _read_recipe(folder: Path) -> None:
    from pyelmo.recipes import read_settings
    from pyelmo.tasks.harness.task import find_task
    from pyelmo.training.recipe import read_recipe

    group, _, name = folder.name.partition("-")
    if group == "task":
        read_settings(find_task(name).recipe, folder / "recipe.toml", group="task")
    else:
        read_recipe(folder / "recipe.toml")


def _recipe_commands(folder: Path, shared: Path) -> list[Command]:
    """Return commands that read the recipe first and then miss a file: what a valid recipe asks for may take hours."""
    group, _, name = folder.name.partition("-")
    recipe, missing = ["--recipe", str(folder / "recipe.toml")], str(folder / "missing")
    if group == "task":
        return [["task", "train", name, "--data", missing, missing, "-o", f"{folder}-run", *recipe]]
    return [
        ["finetune", str(shared / "LM"), missing, "-o", f"{folder}-run", *recipe],
        ["pretrain", missing, "-o", f"{folder}-run", *recipe],
    ]


def _make_plan(folder: Path, shared: Path) -> None:
    (folder / "plan").mkdir(parents=True)
    (folder / "plan" / "plan.toml").write_text(PLAN, "utf-8")


def _read_plan(folder: Path) -> None:
    from pyelmo.experiments.plans import read_plan

    read_plan(folder / "plan.toml")


def _plan_commands(folder: Path, shared: Path) -> list[Command]:
    return [["task", "table1", str(folder / "plan.toml"), "--data", f"{folder}-nothing", "-o", f"{folder}-out"]]


# --- text ------------------------------------------------------------------------------------------------------------


def _make_texts(folder: Path, shared: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"id": number, "text": text, "label": "ab"[number % 2]} for number, text in enumerate(SENTENCES)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    table = "id,text,label\n" + "".join(f'{row["id"]},"{row["text"]}",{row["label"]}\n' for row in rows)
    texts = {"a.txt": "\n".join(SENTENCES) + "\n", "a.jsonl": lines, "a.csv": table, "a.tsv": table.replace(",", "\t")}
    for name, text in texts.items():
        (folder / name).mkdir(parents=True)
        (folder / name / name).write_text(text, "utf-8")
        (folder / f"{name}.gz").mkdir(parents=True)
        (folder / f"{name}.gz" / f"{name}.gz").write_bytes(gzip.compress(text.encode("utf-8")))
    columns = {
        "a.parquet": {"id": [1, 2, 3, 4], "text": list(SENTENCES)},
        "tokens.parquet": {"tokens": [text.split() for text in SENTENCES], "label": [0, 1, 0, 1]},
    }
    for name, values in columns.items():
        (folder / name).mkdir()
        pq.write_table(pa.table(values), folder / name / name)


def _column(folder: Path) -> list[str]:
    if folder.name.startswith("a.txt"):
        return []
    return ["--column", "tokens" if folder.name.startswith("tokens") else "text"]


def _read_text(folder: Path) -> None:
    from pyelmo.corpus.corpus import PrepareSettings
    from pyelmo.corpus.prepare import prepare

    inputs = (str(folder / folder.name),)
    column = "tokens" if folder.name.startswith("tokens") else "text"
    prepare(PrepareSettings(inputs=inputs, column=column, language="en"), folder.parent / "corpus")


def _text_commands(folder: Path, shared: Path) -> list[Command]:
    path, model = str(folder / folder.name), str(shared / "LM")
    embed = ["embed", path, "--model", model, "--quiet", *_column(folder)]
    return [
        [*embed, "-o", f"{folder}.parquet"], [*embed, "-o", f"{folder}-parts", "--format", "npz"],
        ["prepare", path, "-o", f"{folder}-corpus", "--quiet", *_column(folder)], ["evaluate", model, path], ["score", model, path],
        ["neighbours", "build", path, "-o", f"{folder}-index", "--model", model, "--quiet", *_column(folder)],
    ]  # fmt: skip


FORMATS = (
    *(
        Format(name, _make_labelled(variants), _read_labelled, _labelled_commands)
        for name, variants in TASK_FORMATS.items()
    ),
    Format("probe-data", _make_probes, _read_probe, _probe_commands, writes=True),
    Format("recipe", _make_recipes, _read_recipe, _recipe_commands),
    Format("plan", _make_plan, _read_plan, _plan_commands),
    Format("text", _make_texts, _read_text, _text_commands),
)
