"""Low-rank adapters: attached to a model in place, seen as the plain weights that they amount to, merged in fp32."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from cl_bench.harness.errors import UsageError
from cl_bench.methods.base import MethodSettings, setting

_NAME = "default"
_LORA = "LoRA (2106.09685)"


class AdapterSettings(MethodSettings):
    """Shape of the adapters."""

    rank: int = setting(16, "Rank of every update.", unit="1", source=_LORA, inferred=True, ge=1)
    alpha: float = setting(
        32.0, "An update is alpha / rank x B A.", unit="1", source=f"{_LORA}: alpha over rank constant; twice the rank",
        inferred=True, gt=0,
    )  # fmt: skip
    dropout: float = setting(0.0, "Dropout before A.", unit="fraction", source=_LORA, inferred=True, ge=0, lt=1)
    targets: str = setting(
        "all-linear",
        "Layers that get one: all-linear (every linear layer but the output's), or names joined by commas.",
        unit="text",
        source="QLoRA (2305.14314) section 4",
        inferred=True,
    )


def attach(model: Any, settings: AdapterSettings, seed: int = 0) -> None:
    """Give a model trainable adapters, in place, and freeze everything else. B starts at zero, so nothing changes yet.

    Args:
        model: A causal language model.
        settings: Shape of the adapters.
        seed: Of A's first values.

    Raises:
        UsageError: No layer has one of the names.
    """
    from peft import LoraConfig, inject_adapter_in_model

    names = settings.targets.split(",")
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,  # type: ignore[arg-type]
        lora_dropout=settings.dropout,
        target_modules="all-linear" if names == ["all-linear"] else names,
    )
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            inject_adapter_in_model(config, model, adapter_name=_NAME)
    except ValueError as error:
        raise UsageError(
            f"no adapter can be attached to {settings.targets!r}",
            why=str(error).splitlines()[0],
            hint="choose all-linear, or names of linear layers such as q_proj,v_proj",
        ) from error


@torch.no_grad()
def merge(model: Any) -> None:
    """Add every adapter to its layer's weight, in the weight's own format, and take it off; all weights are trained."""
    for name, layer in list(_adapted(model)):
        layer.merge()
        parent, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(parent), leaf, layer.get_base_layer())
    if hasattr(model, "peft_config"):
        del model.peft_config
    model.requires_grad_(True)


def plain_copy(model: Any) -> Any:
    """A copy of a model in which adapters are merged."""
    copied = copy.deepcopy(model)
    merge(copied)
    return copied


def effective_weights(model: Any) -> dict[str, Tensor]:
    """Weights under the plain model's names, tied ones once; an adapted one is W + alpha / rank x B A, with gradient.

    An average of effective weights averages the product. Averages of A and of B, both from zero, would be
    (1 - (1 - a)^t)^2 B A after t steps instead of (1 - (1 - a)^t) B A.
    """
    found = {}
    adapted = dict(_adapted(model))
    for name, weight in model.named_parameters():
        if ".lora_" in name:
            continue
        plain = name.replace(".base_layer.", ".")
        layer = adapted.get(plain.removesuffix(".weight"))
        found[plain] = weight if layer is None else weight + layer.get_delta_weight(_NAME)
    return found


def adapter_weights(model: Any) -> dict[str, Tensor]:
    """Copies of A and B of every adapter, by parameter name."""
    return {name: p.detach().clone() for name, p in model.named_parameters() if ".lora_" in name}


def subspaces(model: Any) -> dict[str, Tensor]:
    """A of every adapter, [rank, inputs], by the name of its layer, with gradient."""
    return {name: layer.lora_A[_NAME].weight for name, layer in _adapted(model)}


@torch.no_grad()
def load_weights(model: Any, weights: Mapping[str, Tensor]) -> None:
    """Copy weights into a model by parameter name; others stay."""
    for name, parameter in model.named_parameters():
        if name in weights:
            parameter.copy_(weights[name])


def _adapted(model: nn.Module) -> Iterator[tuple[str, Any]]:
    # Set where adapters are attached; a plain model is not worth the import of peft.
    if not hasattr(model, "peft_config"):
        return
    from peft.tuners.lora import LoraLayer

    for name, module in model.named_modules():
        if isinstance(module, LoraLayer):
            yield name, module
