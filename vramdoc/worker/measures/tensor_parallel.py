"""Tensor parallelism where the model says how: a plan of Hugging Face's, or one in the target's file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fnmatch import fnmatchcase

from torch import nn

from vramdoc.errors import MeasureError
from vramdoc.worker.measures.registry import measure
from vramdoc.worker.measures.sharding import beginning, require_unplaced, start, world
from vramdoc.worker.measures.snippet import Snippet, on_model, run
from vramdoc.worker.training import Training

PLAN = "TENSOR_PARALLEL_PLAN"
"""What a target's file may define: names of modules, ``*`` for any part, and how each is split (``_STYLES``)."""
_STYLES = {
    "colwise": "ColwiseParallel()",
    "rowwise": "RowwiseParallel()",
    "colwise_rep": "ColwiseParallel(output_layouts=whole)",
    "rowwise_rep": "RowwiseParallel(input_layouts=whole)",
}
_IMPORTS = ("os", "torch", "torch.distributed.tensor.parallel")


@measure("tensor_parallel")
def tensor_parallel(training: Training) -> None:
    """Linear layers split over the ranks of one machine, which all compute on the same batch."""
    ranks, local = world()
    if local < ranks:
        raise MeasureError("tensor parallelism is for the GPUs of one machine: it waits for every layer's activations")
    start(training, same_batch=True)
    require_unplaced(training)
    run(training, Snippet(measure="tensor_parallel", body=beginning(), imports=_IMPORTS))

    def make(model: nn.Module) -> Snippet:
        plan = _matching(model, _plan(training, model))
        _require_divisible(model, plan, ranks)
        written = "".join(f'        "{name}": parallel.{_STYLES[style]},\n' for name, style in plan.items())
        body = f"""
def place_model(model):
    parallel, whole = torch.distributed.tensor.parallel, torch.distributed.tensor.Replicate()
    mesh = torch.distributed.device_mesh.init_device_mesh("cuda", ({ranks},))
    plan = {{
{written}    }}
    return parallel.parallelize_module(model, mesh, plan).cuda()


def make_optimizer(model):
    optimizer = make_optimizer_before_tensor_parallel(model)
    # Split and whole parameters in groups of their own: no operation takes both in one list.
    for group in list(optimizer.param_groups):
        whole = [each for each in group["params"] if not isinstance(each, torch.distributed.tensor.DTensor)]
        group["params"] = [each for each in group["params"] if isinstance(each, torch.distributed.tensor.DTensor)]
        optimizer.add_param_group({{**group, "params": whole}})
    return optimizer
"""
        return Snippet(
            measure="tensor_parallel", body=body, wraps=("make_optimizer",), sets=("place_model",), imports=()
        )

    on_model(training, make)


def _plan(training: Training, model: nn.Module) -> dict[str, str]:
    own = training.names.get(PLAN)
    if isinstance(own, Mapping):
        return dict(own)
    plan = {**(getattr(model, "_tp_plan", None) or {}), **(getattr(type(model), "_tp_plan", None) or {})}
    if not plan:
        raise MeasureError(
            f"{type(model).__name__} carries no plan of tensor parallelism",
            hint=f'define {PLAN} = {{"layers.*.up": "colwise", "layers.*.down": "rowwise"}} in the target\'s file',
        )
    return plan


def _matching(model: nn.Module, plan: Mapping[str, str]) -> dict[str, str]:
    """Those of ``plan`` that a module bears the name of. A weight that another module shares stays whole."""
    named = dict(model.named_modules())
    uses = Counter(id(weight) for module in named.values() for weight in module._parameters.values())
    found: dict[str, str] = {}
    for pattern, style in plan.items():
        modules = [module for name, module in named.items() if fnmatchcase(name, pattern)]
        if not modules or any(
            uses[id(weight)] > 1 for module in modules for weight in module.parameters(recurse=False)
        ):
            continue
        if style not in _STYLES:
            raise MeasureError(f"the plan splits {pattern} in a way that is not known: {style}")
        found[pattern] = style
    if not found:
        raise MeasureError("no module has a name of the plan of tensor parallelism")
    return found


def _require_divisible(model: nn.Module, plan: Mapping[str, str], ranks: int) -> None:
    config = getattr(model, "config", None)
    for what in ("num_attention_heads", "num_key_value_heads"):
        heads = getattr(config, what, None)
        if isinstance(heads, int) and heads % ranks:
            raise MeasureError(f"{heads} heads ({what}) cannot be split over {ranks} ranks")
    for name, module in model.named_modules():
        for pattern, style in plan.items():
            if fnmatchcase(name, pattern) and isinstance(module, nn.Linear):
                width = module.out_features if style.startswith("colwise") else module.in_features
                if width % ranks:
                    raise MeasureError(f"the width of {name}, {width}, cannot be split over {ranks} ranks")
