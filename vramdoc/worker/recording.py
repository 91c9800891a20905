"""The attributed pass: says for every allocation which operation, module and source line it came from.

Three things run together, none of which allocates device memory:

* the allocator's own history (``torch.cuda.memory._record_memory_history``) lists every allocation and free;
* an interception sets the allocator's thread-local *metadata* to a number that stands for the running operation, so
  that every event in the history carries it (0.1 us; a Python stack for each event would cost ten times more);
* *marks*, put into the same history with ``_cuda_annotateMemory``, say what a live block has become: a parameter,
  a gradient, a state of the optimizer. Being events in one list, they need no clock and survive address reuse.

``worker.attribution`` then reads the list.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch._ops import OpOverload

from vramdoc.worker.dispatch import Interception
from vramdoc.worker.history import MARK, Context, Recording
from vramdoc.worker.modules import ModuleStack
from vramdoc.worker.places import is_internal

_COMPILER = "torch._inductor.compile_fx"
_VIEWS = 16
"""How many views may follow one another and still be told apart from nodes that nobody saw being made."""


class Recorder:
    """Records within ``with Recorder() as recorder``; afterwards ``recorder.recording`` is whole."""

    def __init__(self) -> None:
        self.recording = Recording()
        self._interception = Interception(self._observe)
        self._modules = ModuleStack(self._set_ambient)
        self._places: dict[CodeType, bool] = {}
        self._forward: dict[int, Context] = {}  # sequence number of an autograd node -> where it was made
        self._parameters: set[int] = set()  # storage addresses
        self._hooks: list[Any] = []
        self._marked: dict[int, None] = {}  # addresses of blocks that lived when last seen: phases hang on one

    def __enter__(self) -> Recorder:
        torch.cuda.memory._record_memory_history(enabled="all", context=None, clear_history=True)
        self._modules.start()
        self._interception.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._interception.stop()
        self._modules.stop()
        for hook in self._hooks:
            hook.remove()
        self.recording.events = torch._C._cuda_memorySnapshot(None)["device_traces"][torch.cuda.current_device()]
        torch.cuda.memory._record_memory_history(enabled=None)

    def know_model(self, model: nn.Module) -> None:
        """Names modules, marks parameters and buffers, and marks each gradient when it is first accumulated."""
        self._modules.names = {id(module): name for name, module in model.named_modules()}
        self.recording.classes = {name: type(module).__name__ for name, module in model.named_modules()}
        # Compiled code takes memory outside of operations, too.
        self.recording.distributed = torch.distributed.is_initialized() and _COMPILER not in sys.modules
        for name, parameter in model.named_parameters():
            self.mark("parameters", name, [parameter])
            self._parameters.add(_address(parameter))
            if parameter.requires_grad:
                self._hooks.append(parameter.register_post_accumulate_grad_hook(self._gradient_marker(name)))
        for name, buffer in model.named_buffers():
            self.mark("buffers", name, [buffer])

    def know_optimizer(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Marks the optimizer's states and the gradients as they stand; called after each step."""
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        inner = getattr(optimizer, "optim", optimizer)  # of ZeRO-1: the one that steps this rank's share
        for parameter, state in inner.state.items():
            self.mark("optimizer_state", names.get(id(parameter), ""), tensors_in(state))
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                self.mark("gradients", name, [parameter.grad])

    def mark(self, role: str, name: str, tensors: Iterable[Tensor]) -> None:
        """Puts into the history that these tensors' blocks now are ``role``."""
        for tensor in tensors:
            address = _address(tensor)
            if address and _annotate(address, f"{MARK}{role} {name}"):
                self._marked[address] = None

    def enter_phase(self, phase: str, step: int) -> None:
        """Puts the change of phase into the history."""
        text = f"{MARK}phase {phase} {step}"
        for address in list(self._marked):
            if _annotate(address, text):
                return
            del self._marked[address]
        # Nothing of the model's is on the device (it is offloaded): a block of the smallest size, for a moment.
        block = torch.empty(1, dtype=torch.uint8, device="cuda")
        _annotate(block.data_ptr(), text)

    def _observe(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        contexts = self.recording.contexts
        context = self._context(str(func.overloadpacket))
        number = len(contexts)
        contexts.append(context)
        ambient = torch._C._cuda_getMemoryMetadata()
        torch._C._cuda_setMemoryMetadata(str(number))
        try:
            result = self._interception.proceed(func, args, kwargs)
        finally:
            torch._C._cuda_setMemoryMetadata(ambient)
        outputs = tuple(filter(None, map(_address, tensors_in(result))))
        if outputs:
            self.recording.outputs[number] = outputs
            if func is torch.ops.aten._to_copy.default and self._is_autocast_copy(args[0]):
                _annotate(outputs[0], f"{MARK}autocast_cache {context.module}")
        return result

    def _context(self, op: str) -> Context:
        node = torch._C._current_autograd_node()
        module = self._modules.innermost()
        if node is not None and module is None:
            made = self._made(node._sequence_nr())
            if made is None:
                return Context(op, "", "", 0, "", "backward")
            return Context(op, made.module, made.file, made.line, made.function, "backward")
        context = Context(op, module or "", *self._place(), "forward" if node is None else "recompute")
        if node is None:
            # An operation that is differentiated makes its node just before it runs.
            self._forward.setdefault(torch._C._autograd._get_sequence_nr() - 1, context)
        return context

    def _made(self, number: int) -> Context | None:
        """Where the autograd node ``number`` was made; a view's node is not observed: then what came just before."""
        for earlier in range(number, number - _VIEWS, -1):
            if earlier in self._forward:
                return self._forward[earlier]
        return None

    def _place(self) -> tuple[str, int, str]:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            internal = self._places.get(code)
            if internal is None:
                internal = self._places[code] = is_internal(code.co_filename)
            if not internal:
                return code.co_filename, frame.f_lineno, code.co_name
            frame = frame.f_back
        return "", 0, ""

    def _set_ambient(self, module: str | None) -> None:
        """Allocations outside any operation (compiled code) carry the module that runs."""
        if module is None:
            torch._C._cuda_setMemoryMetadata("")
            return
        kind = "forward" if torch._C._current_autograd_node() is None else "recompute"
        self.recording.contexts.append(Context("", module, *self._place(), kind))
        torch._C._cuda_setMemoryMetadata(str(len(self.recording.contexts) - 1))

    def _gradient_marker(self, name: str) -> Any:
        def accumulated(parameter: Tensor) -> None:
            if parameter.grad is not None:
                self.mark("gradients", name, [parameter.grad])

        return accumulated

    def _is_autocast_copy(self, source: Tensor) -> bool:
        """Whether a cast that is now running fills autocast's cache of low-precision parameters."""
        if _address(source) not in self._parameters or not torch.is_autocast_cache_enabled():
            return False
        # Autocast counts as off while it casts, so is_autocast_enabled() cannot tell; the nesting depth can.
        depth = torch.autocast_increment_nesting()
        torch.autocast_decrement_nesting()
        return depth > 1


def _annotate(address: int, text: str) -> bool:
    """Puts ``text`` into the history at a block; False where the allocator has no live block there."""
    try:
        torch._C._cuda_annotateMemory(address, text)
    except RuntimeError:  # freed since, or not from this allocator
        return False
    return True


def tensors_in(value: Any) -> Iterable[Tensor]:
    """Every tensor in a nest of lists, tuples and dictionaries."""
    if isinstance(value, Tensor):
        return (value,)
    if isinstance(value, (list, tuple, dict)):
        return (leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, Tensor))
    return ()


def _address(tensor: Tensor) -> int:
    """Where the tensor's storage lies on the device; 0 where it has none.

    By arithmetic: ``untyped_storage()`` would count as one more user of the storage for ever, and autograd then
    copies what it would have taken over.
    """
    local = getattr(tensor, "_local_tensor", tensor)  # a DTensor holds its shard there
    if local.device.type != "cuda" or local.layout != torch.strided:
        return 0
    try:
        address: int = local.data_ptr()
    except RuntimeError:  # a fake or functional tensor has no address
        return 0
    return address - int(local.storage_offset()) * local.element_size() if address else 0
