"""The libraries of a run, imported once by the process that all processes of a check are forked from.

Several packages import their parts when they are first used; those that a run uses are named.
"""

from __future__ import annotations

import datasets  # noqa: F401
import jsonschema  # noqa: F401
import lm_eval.api.task  # noqa: F401
import lm_eval.evaluator  # noqa: F401
import matplotlib.backends.backend_agg  # noqa: F401
import matplotlib.pyplot  # noqa: F401
import peft  # noqa: F401
import transformers.models.qwen2.modeling_qwen2  # noqa: F401
import transformers.trainer  # noqa: F401
import trl.trainer.grpo_trainer  # noqa: F401
import trl.trainer.sft_trainer  # noqa: F401

import cl_bench.harness.runner
import cl_bench.reports.plots
import cl_bench.reports.report  # noqa: F401
