"""A run's method and modifiers during one stage: built, given their state, put to work, and asked for their state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cl_bench.harness.errors import ClBenchError, blaming
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.registry import Registry
from cl_bench.harness.seeds import global_seed, stage_seed
from cl_bench.harness.spec import RunSpec
from cl_bench.harness.stage_checks import check_student, shapes_of
from cl_bench.methods.base import Adaptation, Context, Method, Modifier, Stage


@dataclass(frozen=True, slots=True)
class Components:
    """The method and the modifiers in their order.

    Attributes:
        seed: Of the run.
        method: The method.
        modifiers: Around it, in the specification's order.
    """

    seed: int
    method: Method
    modifiers: list[Modifier]

    @classmethod
    def of(cls, spec: RunSpec, registry: Registry, state: Mapping[str, Any] | None = None) -> Components:
        """New objects, with the state that ``states`` gave after the stage before (None: the first stage)."""
        assert spec.method is not None
        method_class = registry.method_class(spec.method.name)
        method = method_class(method_class.Settings(**spec.method.settings))
        modifiers = []
        for component in spec.modifiers:
            modifier_class = registry.modifier_class(component.name)
            modifiers.append(modifier_class(modifier_class.Settings(**component.settings)))
        if state is not None:
            method.load_state_dict(state["method"])
            for modifier, own in zip(modifiers, state["modifiers"], strict=True):
                modifier.load_state_dict(own)
        return cls(spec.seed, method, modifiers)

    def adapt(self, student: ChatModel, stage: Stage, context: Context) -> tuple[Adaptation, Stage]:
        """Modifiers around the method, inside a seeded global generator that is restored afterwards.

        Returns:
            What the method reports, and the stage with the rows that modifiers brought.

        Raises:
            ClBenchError: An extension ended the process, returned no ``Adaptation`` or left another model behind.
            DivergedError: Weights or logits are not finite afterwards.
        """
        try:
            return self._adapt(student, stage, context)
        except SystemExit as error:
            raise ClBenchError(
                f"{self._who()} ended the process in stage {stage.name}",
                why=f"SystemExit({error.code!r})",
                hint="raise an exception that says what is wrong",
            ) from error

    def _adapt(self, student: ChatModel, stage: Stage, context: Context) -> tuple[Adaptation, Stage]:
        before = shapes_of(student)
        plain = [modifier for modifier in self.modifiers if not modifier.reparametrises]
        adapters = [modifier for modifier in self.modifiers if modifier.reparametrises]
        with global_seed(stage_seed(self.seed, stage.name)):
            for modifier in (*plain, *adapters):
                with blaming(modifier):
                    modifier.before_stage(student, stage, context)
                    stage = stage.with_examples(modifier.examples(stage), modifier.scorers(), modifier.replaces_rows)
            with blaming(self.method):
                adaptation: Any = self.method.adapt(student, stage, context)
            for modifier in (*adapters, *plain):
                with blaming(modifier):
                    modifier.after_stage(student, stage, context)
        if not isinstance(adaptation, Adaptation):
            raise ClBenchError(
                f"method {self.method.name} returned {adaptation!r:.40} from adapt",
                why="a stage is reported as an Adaptation",
                hint="return Adaptation(steps=…), or what the shared training loops return",
            )
        student.model.eval()
        check_student(student, before, stage.examples, self._who())
        return adaptation, stage

    def _who(self) -> str:
        return " with ".join((self.method.name, *(modifier.name for modifier in self.modifiers)))

    def states(self) -> dict[str, Any]:
        """States carried to the next stage."""
        return {
            "method": self.method.state_dict(),
            "modifiers": [modifier.state_dict() for modifier in self.modifiers],
        }
