"""Are the gradients the same with a change as without? A small copy of the target, on the host, says so.

Measures are applied by the same code as when their memory is measured. The copy has two blocks and a few short samples,
in float64 where it runs, so that a difference in rounding cannot hide one in meaning.
"""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from vramdoc.errors import MeasureError, TargetError
from vramdoc.report.measurement import Choice, Request, Verification
from vramdoc.worker import load, measures, userland
from vramdoc.worker.blocks import Blocks, find_blocks
from vramdoc.worker.initialisers import SkipInitialisers
from vramdoc.worker.training import Training, split

STEPS = 2
BLOCKS = 2
SAMPLES = 4
TOKENS = 16
VOCABULARY = 1024
PIXELS = 64
HEAD_WIDTH = 16
MOST_PARAMETERS = 200_000_000
"""More would take minutes, and gigabytes, on the host."""
_NEEDS_GPU = {"offload_parameters": "its parameters have to pass through a GPU", "ddp_bucket_view": "it takes DDP"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    """One way to make a target small; several are tried, the smallest first."""

    dtype: torch.dtype
    narrow: bool  # rebuild a Hugging Face model from a smaller configuration
    cut: bool  # keep two of the repeated blocks
    crop: bool  # cut images


@dataclass(slots=True)
class _Trace:
    """What a run of a few steps computed."""

    copy: str = ""
    step: int = 0
    gradients: dict[tuple[int, int], Tensor] = field(default_factory=dict)  # by step and number of the parameter
    parameters: list[Tensor] = field(default_factory=list)


def verify(request: Request) -> Verification:
    """Compares gradients, and parameters after :data:`STEPS` steps, with and without ``request.measures``.

    Raises :class:`MeasureError` where the target cannot be made small enough for the host, or does not run there.
    """
    for choice in request.measures:
        if choice.name in _NEEDS_GPU:
            raise MeasureError(f"{choice.name} cannot be checked on the host: {_NEEDS_GPU[choice.name]}")
    torch.set_num_threads(1)  # the copy is small, and other workers may be busy: threads would wait for each other
    size, plain = _smallest_that_runs(request)
    changed = _run(request, size, request.measures)
    pairs = [
        *((gradient, changed.gradients[key]) for key, gradient in plain.gradients.items()),
        *zip(plain.parameters, changed.parameters, strict=True),
    ]
    return Verification(
        largest_difference=max((float((a - b).abs().max()) for a, b in pairs if a.numel()), default=0.0),
        largest_value=max((float(a.abs().max()) for a, _ in pairs if a.numel()), default=0.0),
        tensors=len(pairs),
        copy=plain.copy,
    )


def _smallest_that_runs(request: Request) -> tuple[_Size, _Trace]:
    first: TargetError | None = None
    for dtype, (narrow, cut, crop) in product(
        (torch.float64, torch.float32),
        ((True, False, True), (False, True, True), (False, True, False), (False, False, True), (False, False, False)),
    ):
        size = _Size(dtype=dtype, narrow=narrow, cut=cut, crop=crop)
        try:
            return size, _run(request, size, ())
        except _NotSmallerError:
            continue
        except TargetError as error:
            first = first or error
        gc.collect()
    if first is None:
        raise MeasureError(f"the model has more than {MOST_PARAMETERS:,} parameters and cannot be made smaller")
    raise MeasureError(f"the target does not run on the host: {first.message}")


class _NotSmallerError(MeasureError):
    """This way of making a target small does not apply to it, or leaves it too large."""


def _run(request: Request, size: _Size, choices: Sequence[Choice]) -> _Trace:
    torch.manual_seed(0)
    trace = _Trace()
    training = Training.of(load.load(Path(request.target)), request.batch_size, null=False)
    parts = max((int(choice.options.get("parts", 2)) for choice in request.measures), default=2)
    training.batch_size = min(training.batch_size, max(SAMPLES, 2 * parts))
    training.build = _small_model(training.build, size, trace)
    training.make_batch = _small_batch(training.make_batch, size)
    training.place = lambda model: model
    measures.apply(training, choices)
    if "chunked_cross_entropy" in training.applied and measures.chunked_loss.provider() == "liger":
        raise MeasureError("chunked_cross_entropy cannot be checked on the host: Liger's kernels run on a GPU only")
    with _same_dropout(request.measures), _only_float64() if size.dtype is torch.float64 else nullcontext():
        model = userland.call("build_model()", training.build)
        optimizer = userland.call("make_optimizer()", training.make_optimizer, model)
        for step in range(STEPS):
            trace.step = step
            torch.manual_seed(step)
            whole = userland.call("make_batch()", training.make_batch, training.batch_size)
            torch.manual_seed(step)
            for part in split(whole, training.micro_batches):
                loss = load.check_loss(userland.call("compute_loss()", training.compute_loss, model, part))
                userland.call("backward()", training.backward, loss)
            userland.call("optimizer.step()", training.update, optimizer)
            userland.call("optimizer.zero_grad()", training.clear, optimizer)
    trace.parameters = [parameter.detach().double().clone() for parameter in model.parameters()]
    return trace


@contextmanager
def _only_float64() -> Iterator[None]:
    """Casts to less than float64, as attention's softmax and losses write them, go to float64 instead.

    A torch-function mode would not do: it is off within backward, where checkpoints run forward code.
    """
    smaller = {torch.float32, torch.float16, torch.bfloat16}

    def wide(value: Any) -> Any:
        return torch.float64 if isinstance(value, torch.dtype) and value in smaller else value

    def widened(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: function(*map(wide, args), **{key: wide(value) for key, value in kwargs.items()})

    with ExitStack() as stack:
        for name in ("float", "half", "bfloat16"):
            stack.enter_context(patch.object(Tensor, name, Tensor.double))
        for owner, name in ((Tensor, "to"), (nn.functional, "softmax"), (nn.functional, "log_softmax")):
            stack.enter_context(patch.object(owner, name, widened(getattr(owner, name))))
        yield


@contextmanager
def _same_dropout(choices: Sequence[Choice]) -> Iterator[None]:
    """Micro-batches draw other dropout masks than the whole batch, and that is no difference in meaning."""
    if not any(choice.name == "micro_batch" for choice in choices):
        yield
        return
    with patch.object(nn.functional, "dropout", lambda x, *_args, **_kwargs: x):
        yield


def _small_model(build: Callable[[], nn.Module], size: _Size, trace: _Trace) -> Callable[[], nn.Module]:
    def built() -> nn.Module:
        with SkipInitialisers():
            model = load.check_model(build())
            words = []
            if size.narrow:
                model = _narrowed(model)
                words.append("a narrow configuration")
            elif size.cut:
                found = _cut(model)
                words.append(f"{BLOCKS} of {len(found.modules)} {found.class_name}")
            _cut_vocabulary(model)
        count = sum(parameter.numel() for parameter in model.parameters())
        if count > MOST_PARAMETERS:
            raise _NotSmallerError("too many parameters")
        model = model.cpu().to(size.dtype)
        _initialise(model)
        trace.copy = ", ".join([*words, f"{count:,} parameters", str(size.dtype).removeprefix("torch.")])
        for number, parameter in enumerate(model.parameters()):
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(_recorder(trace, number))
        return model

    return built


def _recorder(trace: _Trace, number: int) -> Callable[[Tensor], None]:
    def record(parameter: Tensor) -> None:
        assert parameter.grad is not None
        trace.gradients[trace.step, number] = parameter.grad.detach().double().clone()

    return record


def _narrowed(model: nn.Module) -> nn.Module:
    """The Hugging Face model built again with two layers and narrow heads. Raises :class:`_NotSmallerError`."""
    config: Any = copy.deepcopy(getattr(model, "config", None))
    if not hasattr(config, "num_attention_heads") or not hasattr(config, "hidden_size"):
        raise _NotSmallerError("no configuration")
    config.num_hidden_layers = BLOCKS
    config.hidden_size = HEAD_WIDTH * config.num_attention_heads
    if hasattr(config, "head_dim"):
        config.head_dim = HEAD_WIDTH
    if getattr(config, "intermediate_size", None):
        config.intermediate_size = 4 * config.hidden_size
    again: nn.Module = userland.call("a narrower build_model()", type(model), config)
    return again.train(model.training)


def _cut(model: nn.Module) -> Blocks:
    """Leaves the first two of the repeated blocks; returns those there were. Raises :class:`_NotSmallerError`."""
    found = find_blocks(model)
    if found is None or len(found.modules) <= BLOCKS:
        raise _NotSmallerError("few blocks")
    parents = {name.rpartition(".")[0] for name in found.names}
    container = model.get_submodule(parents.pop())
    if parents or not isinstance(container, (nn.ModuleList, nn.Sequential)) or len(container) != len(found.modules):
        raise _NotSmallerError("the blocks are not one list")
    del container[BLOCKS:]
    return found


def _cut_vocabulary(model: nn.Module) -> None:
    """Leaves the first rows of large embeddings and of the output heads that belong to them."""
    sizes = {m.num_embeddings for m in model.modules() if isinstance(m, nn.Embedding) and m.num_embeddings > VOCABULARY}
    cut: dict[int, nn.Parameter] = {}  # by the identity of the former: embedding and head may share it

    def rows(parameter: Tensor) -> nn.Parameter:
        return cut.setdefault(id(parameter), nn.Parameter(parameter.detach()[:VOCABULARY].clone()))

    for module in model.modules():
        if isinstance(module, nn.Embedding) and module.num_embeddings in sizes:
            module.weight, module.num_embeddings = rows(module.weight), VOCABULARY
        elif isinstance(module, nn.Linear) and module.out_features in sizes:
            module.weight, module.out_features = rows(module.weight), VOCABULARY
            module.bias = rows(module.bias) if module.bias is not None else None
    config: Any = getattr(model, "config", None)
    if getattr(config, "vocab_size", None) in sizes:
        config.vocab_size = VOCABULARY


def _initialise(model: nn.Module) -> None:
    """Random matrices, in place of those whose initialiser was skipped."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.02)


def _small_batch(make_batch: Callable[[int], Any], size: _Size) -> Callable[[int], Any]:
    def shrink(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        value = value.cpu()
        if value.dim() == 2 and not value.is_floating_point():
            value = value[:, :TOKENS]
        elif size.crop and value.dim() in (3, 4) and min(value.shape[-2:]) > PIXELS:
            value = value[..., :PIXELS, :PIXELS]
        if value.is_floating_point():
            return value.to(size.dtype)
        return torch.where(value >= VOCABULARY, value % VOCABULARY, value) if value.dtype == torch.int64 else value

    return lambda batch_size: torch.utils._pytree.tree_map(shrink, make_batch(batch_size))
