"""One block of on-policy training steps, ours or trl's, on the same work: what ``on_policy_speed.py`` compares."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.update({"TRL_EXPERIMENTAL_SILENCE": "1", "HF_HUB_OFFLINE": "1"})

import transformers
from bare_stage import BareContext, bare_stage, sized_examples

from cl_bench.harness.generation.base import GenerationSettings
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.models.lab import lab_path
from cl_bench.harness.models.load import load_folder
from cl_bench.methods.base import Context, Stage, Student
from cl_bench.methods.grpo import GRPO, GRPOSettings
from cl_bench.methods.on_policy_distillation import OnPolicyDistillation, OnPolicyDistillationSettings
from cl_bench.methods.sdft import SDFT, SDFTSettings
from cl_bench.methods.training.conditioning import conditioned_messages
from cl_bench.methods.training.distillation import train_on_own_samples
from cl_bench.methods.training.divergences import forward_kl, reverse_kl
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.on_policy import OnPolicyObjective
from cl_bench.methods.training.teachers import EMATeacher, FrozenTeacher
from cl_bench.tasks.base import Example, Score

PROMPTS, PROMPT_TOKENS, SAMPLES, NEW_TOKENS = 8, 64, 4, 32
TEMPLATE = "{question}\n{demonstration}\nNow answer."
DEMONSTRATION = "The rule of this row is that the sum of its parts is the answer. The answer is a."
LEARNING_RATE = 1e-6


class Seconds(NamedTuple):
    """Time on two clocks: what a user waits, and what all threads computed (other processes matter less to it)."""

    wall: float
    cpu: float


def now() -> Seconds:
    return Seconds(time.perf_counter(), time.process_time())


def loaded(name: str) -> ChatModel:
    """A lab model whose samples never end: its end token is one past the logits."""
    chat = load_folder(lab_path(name), name)
    chat.tokenizer.add_special_tokens({"eos_token": "<|never|>"})
    never = chat.end_id
    assert never >= chat.model.config.vocab_size
    chat.model.config.eos_token_id = chat.model.generation_config.eos_token_id = never
    return chat


def reward(text: str) -> bool:
    """Splits most groups, and costs nothing."""
    return len(text) % 2 == 0


def rows(chat: ChatModel) -> list[Example]:
    return sized_examples(chat, PROMPTS, PROMPT_TOKENS, DEMONSTRATION)


def our_block(method: str, steps: int) -> Seconds:
    """The median of our steps but the first."""
    chat = loaded("lab-m")
    ends: list[Seconds] = []
    common: dict[str, Any] = {
        "epochs": steps,
        "batch_size": PROMPTS,
        "learning_rate": LEARNING_RATE,
        "max_completion_length": NEW_TOKENS,
    }
    with tempfile.TemporaryDirectory(prefix="cl-bench-speed-") as folder:
        aligner = loaded("lab-l") if method == "distillation" else None
        context = BareContext(Path(folder), PROMPTS * SAMPLES, aligner=aligner, watch=lambda _: ends.append(now()))
        stage = bare_stage(rows(chat), lambda _, text: Score(reward(text), None, True))
        adaptation = ADAPT[method](common, chat, stage, context)
    tokens = steps * PROMPTS * SAMPLES * NEW_TOKENS
    assert adaptation.generated_tokens == {"student": tokens} and adaptation.trained_tokens == tokens
    return _median_step(ends, steps)


def adapt_grpo(common: dict[str, Any], student: Student, stage: Stage, context: Context) -> Any:
    return GRPO(GRPOSettings(**common, samples=SAMPLES)).adapt(student, stage, context)


def adapt_sdft(common: dict[str, Any], student: Student, stage: Stage, context: Context) -> Any:
    # The method samples a prompt once; the training loop under it is asked for four, as trl's is.
    settings = SDFTSettings(**common, skip_tokens=0)

    def objective(session: TrainingSession) -> OnPolicyObjective:
        return OnPolicyObjective(
            teacher=EMATeacher(student, settings.ema_rate),
            teacher_messages=lambda example: conditioned_messages(example, TEMPLATE, example.demonstration or ""),
            divergence=forward_kl,
            reduction="sequence_mean",
            generation=GenerationSettings(NEW_TOKENS, 1.0),
            samples=SAMPLES,
        )

    return train_on_own_samples(SDFT(settings), student, stage, context, settings, objective)


def adapt_distillation(common: dict[str, Any], student: Student, stage: Stage, context: Context) -> Any:
    settings = OnPolicyDistillationSettings(**common)

    def objective(session: TrainingSession) -> OnPolicyObjective:
        return OnPolicyObjective(
            teacher=FrozenTeacher(context.aligner()),
            teacher_messages=lambda example: example.messages,
            divergence=reverse_kl,
            reduction="token_mean",
            generation=GenerationSettings(NEW_TOKENS, 1.0),
            samples=SAMPLES,
        )

    return train_on_own_samples(OnPolicyDistillation(settings), student, stage, context, settings, objective)


ADAPT: dict[str, Callable[[dict[str, Any], Student, Stage, Context], Any]] = {
    "sdft": adapt_sdft,
    "grpo": adapt_grpo,
    "distillation": adapt_distillation,
}


def trl_block(method: str, steps: int) -> Seconds:
    """The median of trl's steps but the first."""
    ends: list[Seconds] = []

    class Clock(transformers.TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            ends.append(now())

    with tempfile.TemporaryDirectory(prefix="cl-bench-speed-") as folder:
        arguments: dict[str, Any] = {
            "output_dir": folder,
            "per_device_train_batch_size": PROMPTS * SAMPLES,
            "max_completion_length": NEW_TOKENS,
            "max_steps": steps,
            "learning_rate": LEARNING_RATE,
            "lr_scheduler_type": "cosine",
            "optim": "adamw_torch_fused",
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "dataloader_pin_memory": False,
            "report_to": "none",
            "save_strategy": "no",
            "disable_tqdm": True,
        }
        trainer = TRAINERS[method](arguments, loaded("lab-m"))
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.add_callback(Clock())
        trainer.train()
    lengths = trainer.state.log_history[-1]
    assert lengths["completions/min_length"] == lengths["completions/max_length"] == NEW_TOKENS
    return _median_step(ends, steps)


def sdft_trainer(arguments: dict[str, Any], chat: ChatModel) -> Any:
    from trl.experimental.sdft import SDFTConfig, SDFTTrainer

    names = {"{question}": "{prompt}", "{demonstration}": "{privileged_context}"}
    template = TEMPLATE
    for ours, theirs in names.items():
        template = template.replace(ours, theirs)
    config = SDFTConfig(
        **arguments,
        num_generations=SAMPLES,
        distillation_mode="full_logits",
        distillation_alpha=0.0,
        teacher_model_kind="ema",
        teacher_update_rate=0.01,
        teacher_sync_steps=1,
        teacher_prompt_template=template,
        max_prompt_length=None,
    )
    columns = [{"prompt": list(e.messages), "privileged_context": e.demonstration} for e in rows(chat)]
    return SDFTTrainer(chat.model, config, _data(columns), processing_class=chat.tokenizer)


def grpo_trainer(arguments: dict[str, Any], chat: ChatModel) -> Any:
    from trl import GRPOConfig, GRPOTrainer

    def rewards(completions: Sequence[list[dict[str, str]]], **columns: Any) -> list[float | None]:
        return [float(reward(completion[0]["content"])) for completion in completions]

    config = GRPOConfig(**arguments, num_generations=SAMPLES, loss_type="grpo", beta=0.0)
    columns = [{"prompt": list(e.messages)} for e in rows(chat)]
    return GRPOTrainer(chat.model, rewards, config, _data(columns), processing_class=chat.tokenizer)


def distillation_trainer(arguments: dict[str, Any], chat: ChatModel) -> Any:
    from trl import DistillationConfig, DistillationTrainer

    # It samples a row once: four samples of a prompt are four rows.
    columns = [{"prompt": list(e.messages)} for e in rows(chat) for _ in range(SAMPLES)]
    return DistillationTrainer(
        chat.model,
        loaded("lab-l").model,
        DistillationConfig(**arguments, beta=1.0),
        train_dataset=_data(columns),
        processing_class=chat.tokenizer,
    )


def _data(columns: list[dict[str, Any]]) -> Any:
    from datasets import Dataset

    return Dataset.from_list(columns)


TRAINERS: dict[str, Callable[[dict[str, Any], ChatModel], Any]] = {
    "sdft": sdft_trainer,
    "grpo": grpo_trainer,
    "distillation": distillation_trainer,
}


def _median_step(ends: Sequence[Seconds], steps: int) -> Seconds:
    assert len(ends) == steps
    wall, cpu = (
        statistics.median(after[clock] - before[clock] for before, after in zip(ends[:-1], ends[1:], strict=True))
        for clock in range(2)
    )
    return Seconds(wall, cpu)
