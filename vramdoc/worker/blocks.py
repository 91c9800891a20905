"""Finds the blocks that a model repeats: the layers of a transformer, the bottlenecks of a convolution net."""

from __future__ import annotations

import keyword
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from torch import nn

from vramdoc.errors import MeasureError
from vramdoc.report.measurement import RepeatedBlocks

_LISTS = (nn.ModuleList, nn.Sequential)
_SHARE_OF_OUTER = 0.8  # blocks within larger blocks are taken where they hold this share of the larger ones'
# parameters and are at least twice as many: the layers of a Swin stage, not the convolutions of a bottleneck


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Modules of one class, none within another."""

    class_name: str
    names: tuple[str, ...]  # dotted, in the order of the model
    modules: tuple[nn.Module, ...]
    code: str  # an expression over ``model`` that gives the modules

    def facts(self) -> RepeatedBlocks:
        """What the parent is told."""
        return RepeatedBlocks(class_name=self.class_name, count=len(self.modules), code=self.code)


def find_blocks(model: nn.Module, class_name: str | None = None) -> Blocks | None:
    """The repeated blocks of ``model``, or those of ``class_name``; None where nothing repeats.

    First the classes that repeat in a ModuleList or Sequential count, wherever in the model; else classes that repeat
    anywhere. Of several the one with most parameters is taken, and its parts instead where they are many more.
    Raises :class:`MeasureError` where no module is a ``class_name``.
    """
    if class_name is not None:
        named = _outermost(_by_class(model.named_modules()).get(class_name, {}))
        if not named:
            raise MeasureError(f"the model has no module of class {class_name}", hint="see --block")
        return _blocks(model, class_name, named)
    groups = {name: found for name, found in _by_class(_in_lists(model)).items() if len(found) > 1}
    groups = groups or {
        name: found for name, found in _by_class(_composite(model.named_modules())).items() if len(found) > 1
    }
    if not groups:
        return None
    groups = {name: _outermost(found) for name, found in groups.items()}
    sizes = {name: sum(_parameters(module) for module in found.values()) for name, found in groups.items()}
    best = max(groups, key=lambda name: sizes[name])
    finer = [
        name
        for name, found in groups.items()
        if len(found) >= 2 * len(groups[best])
        and sizes[name] >= _SHARE_OF_OUTER * sizes[best]
        and not any(isinstance(module, nn.Sequential) for module in found.values())
    ]
    best = max(finer, key=lambda name: sizes[name], default=best)
    return _blocks(model, best, groups[best])


def path(name: str, root: str = "model") -> str:
    """The module called ``name`` as an expression over ``root``: ``model.layers[0].attention``."""
    if any(keyword.iskeyword(part) or not (part.isidentifier() or part.isdigit()) for part in name.split(".") if part):
        return f"{root}.get_submodule({name!r})"
    return root + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in name.split(".") if part)


def _in_lists(model: nn.Module) -> Iterable[tuple[str, nn.Module]]:
    """Composite modules that follow one of their class in a list."""
    for outer, container in model.named_modules():
        if isinstance(container, _LISTS):
            children = [
                (name, child)
                for name, child in container.named_children()
                if _is_composite(child) or (type(container) is nn.ModuleList and type(child) is nn.Sequential)
            ]
            classes = [type(child) for _, child in children]
            for name, child in children:
                if classes.count(type(child)) > 1:
                    yield f"{outer}.{name}" if outer else name, child


def _composite(named: Iterable[tuple[str, nn.Module]]) -> Iterable[tuple[str, nn.Module]]:
    return ((name, module) for name, module in named if name and _is_composite(module))


def _is_composite(module: nn.Module) -> bool:
    """Whether it is a layer of layers, with parameters of its own. Lists have no forward to wrap."""
    if isinstance(module, (nn.ModuleList, nn.ModuleDict)) or type(module) is nn.Sequential:
        return False
    return next(module.children(), None) is not None and next(module.parameters(), None) is not None


def _by_class(named: Iterable[tuple[str, nn.Module]]) -> dict[str, dict[str, nn.Module]]:
    groups: dict[str, dict[str, nn.Module]] = defaultdict(dict)
    for name, module in named:
        groups[type(module).__name__][name] = module
    return groups


def _outermost(found: dict[str, nn.Module]) -> dict[str, nn.Module]:
    return {name: module for name, module in found.items() if not any(outer in found for outer in _ancestors(name))}


def _ancestors(name: str) -> Iterable[str]:
    while name:
        name = name.rpartition(".")[0]
        yield name


def _parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _blocks(model: nn.Module, class_name: str, found: dict[str, nn.Module]) -> Blocks:
    modules = tuple(found.values())
    return Blocks(
        class_name=class_name, names=tuple(found), modules=modules, code=_expression(model, class_name, found)
    )


def _expression(model: nn.Module, class_name: str, found: dict[str, nn.Module]) -> str:
    """The shortest expression that gives exactly these modules."""
    parents = {name.rpartition(".")[0] for name in found}
    if len(parents) == 1:
        parent = parents.pop()
        container = model.get_submodule(parent)
        if isinstance(container, _LISTS) and len(container) == len(found):
            return path(parent)
    if [type(module).__name__ for module in model.modules()].count(class_name) == len(found):
        return f'[module for module in model.modules() if type(module).__name__ == "{class_name}"]'
    return f"[model.get_submodule(name) for name in {tuple(found)!r}]"
