"""The upper bound of question answering on a file: networks predict whole words, but some answers are parts of words.

    python benchmarks/tasks/qa_oracle.py FILE... [--language en] [--scheme squad] [--json RESULT]

Prints for each file: questions, passages, exact match and F1 of the best span of words, and the share of questions
whose answer occurs more than once in the passage.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pyelmo.provenance import machine
from pyelmo.tasks.qa.data import read_questions
from pyelmo.tasks.qa.scores import score_answer


def oracle(path: Path, language: str, scheme: str) -> dict[str, Any]:
    questions = read_questions(path, language)
    exact = f1 = 0.0
    for question in questions:
        texts = [question.passage.text_of(*span) for span in question.spans]
        scores = [score_answer(text, question.answers, scheme) for text in texts]
        exact += max((score.exact for score in scores), default=0.0)
        f1 += max((score.f1 for score in scores), default=0.0)
    count = len(questions)
    return {
        "file": path.name, "language": language, "scheme": scheme, "questions": count,
        "passages": len({id(question.passage) for question in questions}),
        "without_place": sum(not question.spans for question in questions),
        "several_places_percent": round(100 * sum(len(question.spans) > 1 for question in questions) / count, 2),
        "exact_match": round(100 * exact / count, 2), "f1": round(100 * f1 / count, 2),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a file of SQuAD 1.1 or KorQuAD 1.0")
    parser.add_argument("--language", default="en", help="language whose rules split the text (default: en)")
    parser.add_argument("--scheme", default="squad", help="how answers are scored: squad or korquad (default: squad)")
    parser.add_argument("--json", type=Path, help="add the results to those in this file")
    args = parser.parse_args()
    bounds = [oracle(path, args.language, args.scheme) for path in args.files]
    print(json.dumps(bounds, indent=2))
    if args.json:
        before = json.loads(args.json.read_text("utf-8"))["files"] if args.json.exists() else []
        result = {"machine": machine(), "files": before + bounds}
        args.json.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
