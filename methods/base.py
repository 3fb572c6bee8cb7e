"""The contract of methods and modifiers, and what they are handed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.training.ledger import Ledger
from cl_bench.tasks.base import Example, Score

if TYPE_CHECKING:
    from torch import Tensor

    from cl_bench.harness.cache import Cache
    from cl_bench.harness.generation.base import Sampler

Student = ChatModel
"""The model being trained; ``adapt`` changes its weights in place."""


class Need(StrEnum):
    """What a method cannot do without; checked before anything is spent."""

    DEMONSTRATIONS = "demonstrations"
    REWARD = "reward"
    ALIGNER = "aligner"
    ANSWER_EXTRACTION = "answer_extraction"


class Fidelity(StrEnum):
    """How well the implementation is known to match its source."""

    REFERENCE_EXECUTED = "reference_executed"
    PAPER_FORMULA = "paper_formula"
    RECONSTRUCTED = "reconstructed"


def setting(
    default: Any, description: str, *, unit: str, source: str, inferred: bool = False, **constraints: Any
) -> Any:
    """A field of a settings class.

    Args:
        default: Default value.
        description: One sentence.
        unit: Unit of the value ("tokens", "epochs", "1" for pure numbers, "choice", "text", "path" for a file, whose
            content enters the run's hash).
        source: Where the default comes from (paper and section, reference code, or "cl-bench").
        inferred: The source does not state it; it was inferred.
        **constraints: Constraints of ``pydantic.Field`` (``ge``, ``le``, ...).
    """
    extra: dict[str, Any] = {"unit": unit, "source": source, "inferred": inferred}
    return Field(default, description=description, json_schema_extra=extra, **constraints)


class MethodSettings(BaseModel):
    """Base of every method's and modifier's settings: unknown names are errors; values are frozen, defaults too."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True)


@dataclass(frozen=True, slots=True)
class Precision:
    """Numeric formats and batch plan; part of what decides a result.

    Attributes:
        training: Autocast format of forward passes in training; master weights are always fp32.
        generation: Format of sampling, divergence targets' rollouts and evaluation.
        micro_batch_size: Rows in one forward and backward pass.
        generation_batch_size: Rows decoded together.
    """

    training: Literal["fp32", "bf16"] = "fp32"
    generation: Literal["fp32", "bf16"] = "fp32"
    micro_batch_size: int = 16
    generation_batch_size: int = 128


class Stage:
    """One stage of a sequence as a method sees it: training and dev rows and a scorer; no test rows, no later stage."""

    def __init__(
        self,
        index: int,
        name: str,
        examples: Sequence[Example],
        dev: Sequence[Example],
        scorers: Mapping[str, Callable[[Example, str], Score]],
        overrides: Mapping[str, Any] | None = None,
    ) -> None:
        """Build a stage.

        Args:
            index: 1 for the first stage (0 is the untouched model).
            name: Unique row name, for example ``chemistry`` or ``chemistry-2``.
            examples: Training rows, replay included.
            dev: Rows for choosing settings.
            scorers: Scoring function of each task that appears among the rows.
            overrides: Settings that the sequence fixes for this stage (``epochs``).
        """
        self.index, self.name = index, name
        self.examples, self.dev = tuple(examples), tuple(dev)
        self.overrides: Mapping[str, Any] = dict(overrides or {})
        self._scorers = {task: _detached(scorer) for task, scorer in scorers.items()}

    def score(self, example: Example, text: str) -> Score:
        """Score a response with the scorer of the example's own task (mixtures and replay included)."""
        return self._scorers[example.task](example, text)

    def extract(self, example: Example, text: str) -> str | None:
        """The answer that the scorer of the example's task reads in a response; the scorer is shown no gold answer."""
        return self._scorers[example.task](replace(example, demonstration=None, answer=None), text).parsed

    def with_examples(
        self,
        examples: Iterable[Example],
        scorers: Mapping[str, Callable[[Example, str], Score]],
        replacing: bool = False,
    ) -> Stage:
        """The same stage with further training rows.

        Args:
            examples: The rows.
            scorers: Scoring functions of tasks that the stage does not know yet.
            replacing: Leave out as many of the stage's rows, the last ones, so that their number stays.
        """
        further, merged = tuple(examples), {**self._scorers, **scorers}
        own = self.examples[: max(0, len(self.examples) - len(further))] if replacing else self.examples
        return Stage(self.index, self.name, (*own, *further), self.dev, merged, self.overrides)


def _detached(scorer: Callable[[Example, str], Score]) -> Callable[[Example, str], Score]:
    # A bound method would hand its task, and so the test rows, to the method.
    return lambda example, text: scorer(example, text)


class StageCheckpoints(ABC):
    """Checkpoints within a stage: atomic, hashed, the newest kept."""

    @abstractmethod
    def due(self, step: int) -> bool:
        """Whether a checkpoint should be written after this optimizer step."""

    @abstractmethod
    def save(self, step: int, source: Path) -> None:
        """Take over a finished checkpoint folder (moved, hashed, made visible at once; older ones removed)."""

    @abstractmethod
    def latest(self) -> Path | None:
        """The newest complete checkpoint folder after its hashes were verified, or None."""


class Progress(ABC):
    """What the user sees of long work."""

    @abstractmethod
    def phase(self, name: str, total: int | None = None) -> None:
        """Begin a phase of ``total`` steps (None: unknown)."""

    @abstractmethod
    def advance(self, steps: int = 1, **numbers: float) -> None:
        """Report steps done and current numbers (``loss=...``)."""

    @abstractmethod
    def note(self, message: str) -> None:
        """Say one line (warnings, skips)."""


class Context(ABC):
    """What the runner offers a method beside student and stage.

    Models it returns are loaded from the run's own verified checkpoints or from the model's files, frozen and in
    evaluation mode; they are never live copies of the student.
    """

    seed: int
    precision: Precision
    scratch: Path
    cache: Cache
    progress: Progress
    checkpoints: StageCheckpoints
    ledger: Ledger
    backend: str
    backend_version: str
    modifiers: Sequence[Modifier] = ()

    @abstractmethod
    def aligner(self) -> ChatModel:
        """The larger model; raises ``ModelError`` when the run names none or its tokenizer differs."""

    @abstractmethod
    def aligner_fingerprint(self) -> str:
        """Content hash of the aligner, for cache keys; loads nothing."""

    @abstractmethod
    def aligner_parameters(self) -> int:
        """Number of weights of the aligner, tied ones once."""

    @abstractmethod
    def scorer_identity(self) -> str:
        """What fixes the scorers of the stage's tasks, for cache keys."""

    @abstractmethod
    def original(self) -> ChatModel:
        """The untouched model of row 0."""

    @abstractmethod
    def task_start(self) -> ChatModel:
        """The model as it was when this stage began."""

    @abstractmethod
    def sampler(self, model: ChatModel, fixed: bool = False) -> Sampler:
        """A sampler around a model.

        Args:
            model: The model.
            fixed: Its weights stay as they are while the sampler is used (an aligner, a student before its training):
                finished batches are kept, and a run that is killed does not draw them again.
        """

    @abstractmethod
    def row_seed(self, purpose: str, example_id: str, visit: int = 0, rollout: int = 0) -> int:
        """Seed of one sampled row's own generator, from (run seed, stage, purpose, example, visit, rollout)."""

    @abstractmethod
    def after_step(self, step: int) -> None:
        """Called by the training mixin after every optimizer step (``--eval-every``)."""


@dataclass(slots=True)
class Adaptation:
    """What one stage of training did.

    Attributes:
        steps: Optimizer steps.
        trained_tokens: Tokens under the loss, summed over steps.
        generated_tokens: Tokens sampled, by whom ("student", "aligner").
        flops: Floating-point operations by part ("train", "teacher", "anchor", "generate", "data_generation").
        data_generation: For methods that generate data: ``first_sample_accuracy``, ``accepted_share``, ``candidates``,
            edit similarity and so on; empty otherwise.
        teacher: For methods with a teacher, at the end of the stage: ``reward``, ``kl_to_student``, ``kl_to_start``
            (``methods.training.teacher_log``).
        rejected: Rows rejected or dropped, by reason.
        data_hash: Hash of the data trained on.
        warnings: Sentences for the report.
        logs: Numbers by step, for plots.
    """

    steps: int = 0
    trained_tokens: int = 0
    generated_tokens: dict[str, int] = field(default_factory=dict)
    flops: dict[str, float] = field(default_factory=dict)
    data_generation: dict[str, float] = field(default_factory=dict)
    teacher: dict[str, float] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)
    data_hash: str = ""
    warnings: list[str] = field(default_factory=list)
    logs: list[dict[str, float]] = field(default_factory=list)


class _Stateful:
    """State carried from stage to stage, and state needed to go on in the middle of one.

    Both are JSON values or tensors (nested dicts and lists allowed); the default is none.
    """

    def state_dict(self) -> dict[str, Any]:
        """State carried from stage to stage."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Inverse of ``state_dict``."""

    def training_state(self) -> dict[str, Any]:
        """State needed to go on in the middle of a stage."""
        return {}

    def load_training_state(self, state: Mapping[str, Any]) -> None:
        """Inverse of ``training_state``."""


class Method(_Stateful, ABC):
    """A post-training method. One file, one class; found by its file's name or by an entry point.

    Class attributes:
        name: Name on the command line.
        needs: What it cannot do without.
        fidelity: How well it is known to match its source.
        paper: Where it comes from.
        family: "supervised" or "on-policy".
        checked: What its numbers were checked against; empty: nothing.
        takes_modifiers: False for a method that bypasses the training mixin.
        Settings: Its settings class.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[Need]] = frozenset()
    fidelity: ClassVar[Fidelity]
    paper: ClassVar[str] = ""
    family: ClassVar[str] = ""
    checked: ClassVar[str] = ""
    takes_modifiers: ClassVar[bool] = True
    Settings: ClassVar[type[MethodSettings]]

    def __init__(self, settings: MethodSettings | None = None) -> None:
        """Build with settings (defaults where None)."""
        self.settings = settings if settings is not None else self.Settings()

    @abstractmethod
    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train the student in place on one stage."""


class Modifier(_Stateful, ABC):
    """Composes with any method: ``--with replay --with ewc``. Every hook has a neutral default.

    Class attributes:
        name: Name on the command line.
        paper: Where it comes from.
        fidelity: How well it is known to match its source.
        checked: What its numbers were checked against; empty: nothing.
        reparametrises: It changes which parameters are trained (adapters). Whatever the order given, it is the last
            before a stage and the first after it, so that the others find the plain weights; one at most.
        Settings: Its settings class.
    """

    name: ClassVar[str]
    paper: ClassVar[str] = ""
    fidelity: ClassVar[Fidelity]
    checked: ClassVar[str] = ""
    reparametrises: ClassVar[bool] = False
    Settings: ClassVar[type[MethodSettings]]

    def __init__(self, settings: MethodSettings | None = None) -> None:
        """Build with settings (defaults where None)."""
        self.settings = settings if settings is not None else self.Settings()

    def before_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Attach adapters, take anchors."""

    def examples(self, stage: Stage) -> Iterable[Example]:
        """Further training rows (replay); asked once a stage, after ``before_stage``."""
        return ()

    @property
    def replaces_rows(self) -> bool:
        """Whether these rows take the place of as many of the stage's own, so that the number of steps stays."""
        return False

    def scorers(self) -> Mapping[str, Callable[[Example, str], Score]]:
        """Scoring functions of tasks that ``examples`` brings in and that the run does not hold."""
        return {}

    def parameter_penalty(self, student: Student) -> Tensor | None:
        """A scalar added once per optimizer step, before clipping (EWC, L2-SP, O-LoRA)."""
        return None

    def token_penalty(self, student: Student, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor] | None:
        """(sum, count) over the micro-batch's loss tokens, normalised with the optimizer step's total (LwF).

        Args:
            student: What is trained.
            batch: ``input_ids``, ``attention_mask`` and ``loss_weights`` [B, T] (above 0 on tokens under the loss, as
                labels); ``prompt_lengths`` [B].
        """
        return None

    def after_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Estimate Fisher information, merge, average weights, fill the buffer."""
