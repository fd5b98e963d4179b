"""elmo task: train networks for downstream tasks with and without an encoder, use them and compare them."""

from __future__ import annotations

from pyelmo.cli.actions import Action
from pyelmo.cli.tasks import ensemble, evaluate, predict, table, table1, train

HELP = "Train networks for downstream tasks with and without ELMo, use them and compare them."
EXAMPLE = train.EXAMPLE
ACTIONS = {
    "train": Action(train.HELP, train.EXAMPLE, train.add_arguments, train.run),
    "evaluate": Action(evaluate.HELP, evaluate.EXAMPLE, evaluate.add_arguments, evaluate.run),
    "predict": Action(predict.HELP, predict.EXAMPLE, predict.add_arguments, predict.run),
    "ensemble": Action(ensemble.HELP, ensemble.EXAMPLE, ensemble.add_arguments, ensemble.run),
    "table": Action(table.HELP, table.EXAMPLE, table.add_arguments, table.run),
    "table1": Action(table1.HELP, table1.EXAMPLE, table1.add_arguments, table1.run),
}
