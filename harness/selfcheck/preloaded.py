"""The libraries of a run, imported once by the process that all processes of a check are forked from."""

from __future__ import annotations

import lm_eval  # noqa: F401
import matplotlib.pyplot  # noqa: F401
import peft  # noqa: F401
import transformers  # noqa: F401
import trl  # noqa: F401

import cl_bench.harness.runner  # noqa: F401
