"""The prompts that shift is measured on: dev rows of the new task and of the retention suite, none of them scored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeVar

from cl_bench.harness.errors import DataError
from cl_bench.harness.measure.contamination import Item
from cl_bench.harness.measure.evaluation import fixed_rows, with_system_prompt
from cl_bench.harness.measure.run_evaluation import TaskColumn
from cl_bench.harness.measure.suite import SuiteRunner
from cl_bench.harness.spec import RunSpec
from cl_bench.methods.training.trained import sample_order
from cl_bench.tasks.base import Example, Message
from cl_bench.tasks.sources.base import DataOptions

if TYPE_CHECKING:
    from cl_bench.harness.models.chat_model import ChatModel

Row = TypeVar("Row")
MOST_PROMPTS, FEWEST_PROMPTS = 64, 4
_EVALUATED_A_PROMPT = 4
"""Evaluated rows of a task for each prompt of a set."""
LONGEST_ANSWER = 128
"""Tokens of an answer at most: a mean per token needs no longer ones, and a small model's samples rarely end."""
NEW_TASK, GENERAL, TRAINING = "new task", "general", "training rows"


@dataclass(frozen=True, slots=True)
class ShiftPrompt:
    """A prompt to answer.

    Attributes:
        column: Task or benchmark it belongs to.
        id: Its id there.
        ids: Token ids.
        longest: Tokens of an answer at most.
    """

    column: str
    id: str
    ids: tuple[int, ...]
    longest: int


@dataclass(frozen=True, slots=True)
class PromptSet:
    """Prompts that are answered and read together.

    Attributes:
        name: ``NEW_TASK``, ``GENERAL`` or ``TRAINING``.
        key: Tells it from the other sets of a run.
        prompts: The prompts, fixed.
        reason: Why there are none.
    """

    name: str
    key: str
    prompts: tuple[ShiftPrompt, ...]
    reason: str = ""


class PromptSets:
    """The sets of one run; built on first use, the same for every seed and method."""

    def __init__(
        self,
        spec: RunSpec,
        columns: Sequence[TaskColumn],
        scored: Mapping[str, Sequence[Item]],
        options: DataOptions,
        stage_rows: Callable[[int], Sequence[Example]],
    ) -> None:
        """Remember what must not be asked.

        Args:
            spec: The run.
            columns: The columns that come from tasks.
            scored: The evaluated items by column, the suite's too.
            options: Where public data are.
            stage_rows: Rows of a stage, by its place in the run from 1.
        """
        self._spec, self._options, self._stage_rows = spec, options, stage_rows
        self._tasks = {item.column.name: item.task for item in columns if item.column.kind == "sequence"}
        self._scored_ids = {(column, item.id) for column, items in scored.items() for item in items}
        self._scored_ids |= {(item.task.name, example.id) for item in columns for example in item.examples}
        self._scored_turns: set[tuple[str, ...]] = {
            (_alike(item.question),) for items in scored.values() for item in items
        }
        # A scored row may have worked examples before its own turns.
        examples = [example for item in columns for example in item.examples]
        self._scored_turns |= {end for example in examples for end in _ends(tuple(map(_alike, _turns(example))))}
        self._suite_rows = max((len(scored.get(name, ())) for name in self._benchmarks()), default=0)
        self.size = _size([len(item.examples) for item in columns if item.column.kind == "sequence"])
        self._longest = min(LONGEST_ANSWER, max((task.max_new_tokens for task in self._tasks.values()), default=1))
        self._sets: dict[str, PromptSet] = {}

    def new_task(self, model: ChatModel, columns: Sequence[str]) -> PromptSet:
        """Dev rows of the tasks that a stage trains on, evenly over these; no row that a column scores."""
        key = "/".join((NEW_TASK, *columns))
        if key not in self._sets:
            reason = self._no_dev(columns)
            try:
                rows = {name: self._fresh_dev(name) for name in columns}
            except DataError as error:  # of a later stage, which will say so itself
                rows, reason = {}, f"dev rows cannot be read: {error.what}"
            chosen = [self._prompt(model, name, example) for name, example in _evenly(rows, self.size)]
            self._sets[key] = PromptSet(NEW_TASK, key, tuple(chosen), "" if chosen else reason)
        return self._sets[key]

    def general(self, model: ChatModel) -> PromptSet:
        """Dev rows of the retention suite as one user turn each, evenly over its benchmarks; none that is scored."""
        if GENERAL not in self._sets:
            rows, reason = self._suite()
            chosen = [
                ShiftPrompt(name, id_, model.prompt_ids(self._turns(question)), self._longest)
                for name, (id_, question) in _evenly(rows, self.size)
            ]
            self._sets[GENERAL] = PromptSet(GENERAL, GENERAL, tuple(chosen), "" if chosen else reason)
        return self._sets[GENERAL]

    def training(self, model: ChatModel, index: int) -> PromptSet:
        """Prompts of a stage's own rows: those that ``methods.training.trained`` keeps first."""
        key = f"{TRAINING}/{index}"
        if key not in self._sets:
            reason = "the stage has no rows"
            try:
                rows = sorted(self._stage_rows(index), key=lambda example: sample_order(example.id))
            except DataError as error:  # of a later stage, which will say so itself
                rows, reason = [], f"the stage's rows cannot be read: {error.what}"
            chosen = [
                ShiftPrompt(example.task, example.id, model.prompt_ids(example.messages), self._longest)
                for example in rows[: self.trained_rows]
            ]
            self._sets[key] = PromptSet(TRAINING, key, tuple(chosen), "" if chosen else reason)
        return self._sets[key]

    @property
    def trained_rows(self) -> int:
        """Trained-on rows that are looked at, at most."""
        return max(FEWEST_PROMPTS, self.size // 2)

    def _prompt(self, model: ChatModel, column: str, example: Example) -> ShiftPrompt:
        messages = with_system_prompt(example.messages, self._spec.evaluation.system_prompt)
        longest = min(LONGEST_ANSWER, self._tasks[column].max_new_tokens)
        return ShiftPrompt(column, example.id, model.prompt_ids(messages), longest)

    def _turns(self, question: str) -> tuple[Message, ...]:
        return with_system_prompt(({"role": "user", "content": question},), self._spec.evaluation.system_prompt)

    def _fresh_dev(self, column: str) -> list[Example]:
        task = self._tasks[column]
        fresh = [example for example in task.dev() if self._is_fresh(task.name, example.id, _turns(example))]
        return fixed_rows(fresh, self.size)

    def _is_fresh(self, column: str, id_: str, turns: tuple[str, ...]) -> bool:
        return (column, id_) not in self._scored_ids and tuple(map(_alike, turns)) not in self._scored_turns

    def _no_dev(self, columns: Sequence[str]) -> str:
        why = "all of them are scored" if self._spec.evaluation.split == "dev" else "there is none"
        return f"no dev row of {', '.join(columns)} is left to ask: {why}"

    def _benchmarks(self) -> list[str]:
        return [str(entry["name"]) for entry in self._spec.suite.tasks] if self._spec.suite else []

    def _suite(self) -> tuple[dict[str, list[tuple[str, str]]], str]:
        """Rows (id, question) by benchmark that no column scores, and why there are none."""
        names = self._benchmarks()
        if self._spec.suite is None or not names:
            return {}, "the run has no retention suite"
        each = -(-self.size // len(names))
        # While settings are being chosen, dev rows are scored first and those after them are free.
        taken = self._suite_rows if self._spec.evaluation.split == "dev" else 0
        entries = [{**entry, "rows": None} for entry in self._spec.suite.tasks]
        runner = SuiteRunner(entries, self._options, rows=each + taken, split="dev")
        try:
            found = runner.rows()
        except DataError as error:
            return {}, f"the suite's dev rows cannot be read: {error.what}"
        fresh = {
            name: [(row.id, row.question) for row in rows if self._is_fresh(name, row.id, (row.question,))][:each]
            for name, rows in found.items()
        }
        return fresh, "every dev row of the retention suite is scored, or there is none"


def _size(rows: Sequence[int]) -> int:
    """Prompts of a set: a share of what is evaluated of a task, so that shift costs a share of evaluation at most."""
    return min(MOST_PROMPTS, max(FEWEST_PROMPTS, max(rows, default=0) // _EVALUATED_A_PROMPT))


def _turns(example: Example) -> tuple[str, ...]:
    return tuple(message["content"] for message in example.messages if message["role"] != "system")


def _alike(text: str) -> str:
    """A turn as it is compared with others: case and spaces make no other item of it."""
    return " ".join(text.lower().split())


def _ends(turns: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [turns[start:] for start in range(len(turns))]


def _evenly(rows: Mapping[str, Sequence[Row]], most: int) -> list[tuple[str, Row]]:
    in_turn: Iterator[Iterable[tuple[str, Row] | None]] = zip_longest(
        *([(name, row) for row in own] for name, own in rows.items())
    )
    return [pair for pairs in in_turn for pair in pairs if pair is not None][:most]


def as_plain(found: PromptSet) -> dict[str, object]:
    """What ``shift.json`` says of a set."""
    ids = [[prompt.column, prompt.id] for prompt in found.prompts]
    return {"n": len(ids), "ids": ids, **({"reason": found.reason} if found.reason else {})}
