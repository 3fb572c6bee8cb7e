"""A command group that answers a mistyped command with the nearest ones."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from cl_bench.harness.errors import UnknownNameError


class SuggestingGroup(TyperGroup):
    """Raises ``UnknownNameError`` for a command that does not exist."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the arguments begin with."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise UnknownNameError("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)
