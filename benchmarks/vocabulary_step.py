"""One training step at a large vocabulary in this process: ``vocabulary_memory.py`` starts one process a case.

Prints one line of JSON: resident memory before the step, at its peak until the step's end and until the stage's end
(2**30 bytes), seconds and loss of the step. Gradients before clipping go into a file. Samples are drawn beforehand, so
that every case trains on the same tokens.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

os.environ.update({"TRL_EXPERIMENTAL_SILENCE": "1", "HF_HUB_OFFLINE": "1"})

import torch
import transformers
from bare_stage import BareContext, bare_stage, sized_examples

from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt, Sampler
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.models.lab import lab_path
from cl_bench.harness.models.load import load_tokenizer
from cl_bench.harness.seeds import global_seed
from cl_bench.methods.base import Fidelity, Method, MethodSettings, Modifier, Student
from cl_bench.methods.isdft import ISDFT, ISDFTSettings
from cl_bench.methods.sdft import SDFT, SDFTSettings
from cl_bench.methods.training import divergences
from cl_bench.tasks.base import Example

ALPHAS = {"sdft": 0.0, "jsd": 0.5}
TEMPLATE = "{question}\n{demonstration}\nNow answer."


@dataclass(frozen=True)
class Size:
    """How much one step works on."""

    vocabulary: int = 151_936
    width: int = 64
    rows: int = 8
    prompt_tokens: int = 32
    new_tokens: int = 128


class Predrawn(Sampler):
    """Hands out the same random tokens for a prompt each time; what is measured is the step, not the sampling."""

    context_length = 1024

    def __init__(self, size: Size) -> None:
        self._size = size

    def generate(self, prompts: Sequence[Prompt], settings: GenerationSettings) -> list[Completion]:
        return [
            Completion(tuple(ids), "", "length", (0.0,) * len(ids))
            for ids in (predrawn(prompt.ids, self._size) for prompt in prompts)
        ]


def predrawn(prompt: Sequence[int], size: Size) -> list[int]:
    generator = torch.Generator().manual_seed(sum((i + 1) * token for i, token in enumerate(prompt)))
    return torch.randint(3, size.vocabulary, (size.new_tokens,), generator=generator).tolist()


class GradientFile(Modifier):
    """Writes the gradients of an optimizer step into a file, before clipping."""

    name: ClassVar[str] = "gradient-file"
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    Settings: ClassVar[type[MethodSettings]] = MethodSettings

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def parameter_penalty(self, student: Student) -> torch.Tensor | None:
        write_gradients(student.model, self._path)
        return None


def write_gradients(model: torch.nn.Module, path: Path) -> None:
    torch.save({name: p.grad for name, p in model.named_parameters() if p.grad is not None}, path)


def random_model(size: Size) -> ChatModel:
    """A Qwen2 of two layers with tied embeddings, nearly all of whose weights are the vocabulary's."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    tokenizer = load_tokenizer(lab_path("lab-m"))
    config = Qwen2Config(
        vocab_size=size.vocabulary,
        hidden_size=size.width,
        intermediate_size=2 * size.width,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        initializer_range=0.1,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    with global_seed(0):
        return ChatModel(Qwen2ForCausalLM(config).eval(), tokenizer, "random")


@dataclass
class StepEnd:
    """Peak memory and time when the optimizer step ends; a stage goes on (ours then looks at the teacher)."""

    peak: float = 0.0
    moment: float = 0.0

    def __call__(self, step: int) -> None:
        self.peak, self.moment = resident("VmHWM"), time.perf_counter()


def our_step(objective: str, chat: ChatModel, size: Size, folder: Path, gradients: Path, end: StepEnd) -> float:
    """The method's own ``adapt``, one optimizer step; returns the loss."""
    common: dict[str, Any] = {
        "epochs": 1,
        "batch_size": size.rows,
        "skip_tokens": 0,
        "max_completion_length": size.new_tokens,
        "teacher_template": TEMPLATE,
    }
    method: Method
    if objective == "isdft":
        method = ISDFT(ISDFTSettings(**common))
    else:
        method = SDFT(SDFTSettings(**common, alpha=ALPHAS[objective]))
    context = BareContext(
        folder,
        size.rows,
        sampler=lambda _: Predrawn(size),
        original=chat,
        modifiers=[GradientFile(gradients)],
        watch=end,
    )
    adaptation = method.adapt(chat, bare_stage(examples(chat, size)), context)
    assert adaptation.steps == 1 and adaptation.trained_tokens == size.rows * size.new_tokens
    return adaptation.logs[0]["loss"]


def examples(chat: ChatModel, size: Size) -> list[Example]:
    return sized_examples(chat, size.rows, size.prompt_tokens, "The answer is a.")


def trl_arguments(folder: Path, size: Size) -> dict[str, Any]:
    return {
        "output_dir": str(folder / "trl"),
        "per_device_train_batch_size": size.rows,
        "max_completion_length": size.new_tokens,
        "max_steps": 1,
        "learning_rate": 5e-5,
        "max_grad_norm": 1e9,
        "shuffle_dataset": False,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "dataloader_pin_memory": False,
        "report_to": "none",
        "save_strategy": "no",
        "logging_steps": 1,
        "disable_tqdm": True,
    }


def sdft_trainer(objective: str, chat: ChatModel, size: Size, folder: Path) -> Any:
    """SDFT of trl over full logits; its teacher comes from the model's folder."""
    from datasets import Dataset
    from trl.experimental.sdft import SDFTConfig, SDFTTrainer

    class Trainer(SDFTTrainer):
        def _generate(self, prompt_ids: list[list[int]]) -> tuple[list[list[int]], list[list[int]]]:
            return prompt_ids, [predrawn(ids, size) for ids in prompt_ids]

    arguments = SDFTConfig(
        **trl_arguments(folder, size),
        num_generations=1,
        distillation_mode="full_logits",
        distillation_alpha=ALPHAS[objective],
        teacher_model_kind="ema",
        teacher_update_rate=0.01,
        teacher_sync_steps=1,
        teacher_prompt_template=TEMPLATE.replace("{question}", "{prompt}").replace(
            "{demonstration}", "{privileged_context}"
        ),
        max_prompt_length=None,
    )
    rows = [{"prompt": list(e.messages), "privileged_context": e.demonstration} for e in examples(chat, size)]
    return Trainer(
        model=chat.model, args=arguments, train_dataset=Dataset.from_list(rows), processing_class=chat.tokenizer
    )


def distillation_trainer(objective: str, chat: ChatModel, size: Size, folder: Path) -> Any:
    """Distillation of trl, in chunks; the teacher sees the plain prompt, so that the values are not ours."""
    from datasets import Dataset
    from trl import DistillationConfig, DistillationTrainer

    class Trainer(DistillationTrainer):
        def _generate_single_turn(self, prompt_ids: list[list[int]], *rest: Any, **named: Any) -> list[list[int]]:
            return [predrawn(ids, size) for ids in prompt_ids]

    rows = [{"prompt": list(e.messages)} for e in examples(chat, size)]
    return Trainer(
        model=chat.model,
        teacher_model=transformers.AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32),
        args=DistillationConfig(**trl_arguments(folder, size), beta=ALPHAS[objective]),
        train_dataset=Dataset.from_list(rows),
        processing_class=chat.tokenizer,
    )


def trl_step(trainer: Any, gradients: Path, end: StepEnd) -> float:
    class Writer(transformers.TrainerCallback):
        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            write_gradients(trainer.model, gradients)

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            end(state.global_step)

    trainer.add_callback(Writer())
    trainer.train()
    return float(next(entry["loss"] for entry in trainer.state.log_history if "loss" in entry))


def run(objective: str, side: str, size: Size, gradients: Path) -> dict[str, float]:
    """One case."""
    chat = random_model(size)
    with tempfile.TemporaryDirectory(prefix="cl-bench-vocabulary-") as name:
        folder = Path(name)
        if side.startswith("trl"):
            chat.model.save_pretrained(folder / "model")
            chat.model.config._name_or_path = str(folder / "model")
            make = sdft_trainer if side == "trl-full" else distillation_trainer
            chat.model.train()
            preload("trl", "DistillationTrainer")
            preload("trl.experimental.sdft", "SDFTTrainer")
        if side == "whole":
            divergences._WHOLE_BELOW = 1 << 62
        baseline, start, end = resident("VmRSS"), time.perf_counter(), StepEnd()
        if side.startswith("trl"):
            loss = trl_step(make(objective, chat, size, folder), gradients, end)
        else:
            loss = our_step(objective, chat, size, folder, gradients, end)
    stage_peak = resident("VmHWM")
    seconds = end.moment - start
    return {"baseline": baseline, "peak": end.peak, "stage_peak": stage_peak, "seconds": seconds, "loss": loss}


def preload(module: str, name: str) -> None:
    """Import a name now: libraries are loaded lazily, and are no part of a step."""
    getattr(importlib.import_module(module), name)


def resident(field: str) -> float:
    """Resident memory in 2**30 bytes: VmRSS now, VmHWM at its peak."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split(f"{field}:")[1].split()[0]) / 2**20
    # Elsewhere there is only the peak so far.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("objective", choices=["sdft", "isdft", "jsd"])
    parser.add_argument("side", choices=["ours", "whole", "trl-full", "trl-chunked"])
    parser.add_argument("gradients", type=Path)
    parser.add_argument("--vocabulary", type=int, default=Size.vocabulary)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    preload("transformers", "Trainer")
    size = Size(options.vocabulary)
    numbers = run(options.objective, options.side, size, options.gradients)
    print(json.dumps({**numbers, "threads": torch.get_num_threads()}))


if __name__ == "__main__":
    main()
