"""What a run loads, loaded once by the process that all processes of a check are forked from.

Several packages import their parts when they are first used; those that a run uses are named. The lab's rows
for dev and test are set apart here too: they are the same for every run.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import datasets  # noqa: F401
import jsonschema  # noqa: F401
import lm_eval.api.task  # noqa: F401
import lm_eval.evaluator  # noqa: F401
import matplotlib.backends.backend_agg  # noqa: F401
import matplotlib.pyplot  # noqa: F401
import peft  # noqa: F401
import transformers.models.qwen2.modeling_qwen2  # noqa: F401
import transformers.models.qwen2.tokenization_qwen2  # noqa: F401
import transformers.trainer  # noqa: F401
import trl.trainer.grpo_trainer  # noqa: F401
import trl.trainer.sft_trainer  # noqa: F401

import cl_bench.harness.generation.local
import cl_bench.harness.models.load
import cl_bench.harness.runner
import cl_bench.methods.training.distillation
import cl_bench.methods.training.generated
import cl_bench.methods.training.policy
import cl_bench.reports.plots
import cl_bench.reports.report
import cl_bench.tasks.lab.skills
import cl_bench.tasks.lab.task
import cl_bench.tasks.loader  # noqa: F401
from cl_bench.tasks.lab.kinds import Kind
from cl_bench.tasks.lab.skill_kinds import SKILL_KINDS
from cl_bench.tasks.lab.world import KINDS


def _split(kinds: Iterable[Kind]) -> None:
    for kind in kinds:
        kind.operands_of("dev")
        kind.operands_of("test")


_split(SKILL_KINDS.values())
_split(chain.from_iterable(KINDS.values()))
