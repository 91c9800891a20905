"""The module table as a tree, with repeated layers folded into one row.

A transformer of 48 layers has 48 equal subtrees. Children of one parent that are numbered and of one class
become a single node, ``0 … 47``, whose figures are their sum; what lies below them is merged by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from vramdoc.report import ModuleRow

_SIZES = (
    "parameter_bytes",
    "gradient_bytes",
    "optimizer_state_bytes",
    "activation_bytes",
    "other_bytes",
    "total_bytes",
)
_FEWEST_TO_FOLD = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleLine:
    """One line of the table. Sizes in bytes, summed over ``count`` equal modules."""

    depth: int  # 0 is the model itself
    label: str  # relative to the line above it: "h.0 … h.11"
    class_name: str
    count: int  # how many modules the line stands for
    sizes: ModuleRow  # the sums; its ``name`` is that of the first module


@dataclass(slots=True, kw_only=True)
class _Node:
    label: str
    rows: list[ModuleRow]
    children: list[_Node] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(row.total_bytes for row in self.rows)

    @property
    def class_name(self) -> str:
        return self.rows[0].class_name


def module_lines(rows: Sequence[ModuleRow], *, limit: int, least_bytes: int = 1) -> tuple[ModuleLine, ...]:
    """The ``limit`` largest lines of at least ``least_bytes``, in the model's order, below their parents."""
    roots = [_without_pass_through(node) for node in _folded(_tree(rows))]
    ranked = sorted(_walk(roots), key=lambda pair: (-pair[1].total, pair[0]))
    kept = {id(node) for _, node in ranked[:limit] if node.total >= least_bytes}
    return tuple(
        ModuleLine(
            depth=depth,
            label=node.label,
            class_name=node.class_name,
            count=len(node.rows),
            sizes=_summed(node.rows),
        )
        for depth, node in _walk(roots)
        if id(node) in kept
    )


def _tree(rows: Iterable[ModuleRow]) -> list[_Node]:
    """Nodes below their nearest ancestor that has a row of its own."""
    nodes: dict[str, _Node] = {}
    roots: list[_Node] = []
    for row in sorted(rows, key=lambda row: row.name.count(".") + bool(row.name)):
        parent = row.name
        while parent:
            parent = parent.rpartition(".")[0]
            if parent in nodes:
                break
        above = nodes.get(parent) if row.name else None
        label = row.name.removeprefix(f"{parent}.") if parent else row.name
        node = _Node(label=label, rows=[row])
        nodes.setdefault(row.name, node)
        (above.children if above is not None else roots).append(node)
    return roots


def _folded(nodes: Sequence[_Node]) -> list[_Node]:
    """``nodes`` with runs of numbered siblings of one class made one, all the way down."""
    folded = []
    for key, run in groupby(nodes, key=_fold_key):
        group = list(run)
        if key is None or len(group) < _FEWEST_TO_FOLD:
            folded += group
        else:
            folded.append(_merged(group, f"{group[0].label} … {group[-1].label}"))
    for node in folded:
        node.children = _folded(node.children)
    return folded


def _fold_key(node: _Node) -> tuple[str, str] | None:
    prefix, _, number = node.label.rpartition(".")
    return (prefix, node.class_name) if number.isdecimal() else None


def _merged(nodes: Sequence[_Node], label: str) -> _Node:
    """One node for all, its children merged by label and class in the order in which they first appear."""
    below: dict[tuple[str, str], list[_Node]] = {}
    for node in nodes:
        for child in node.children:
            below.setdefault((child.label, child.class_name), []).append(child)
    return _Node(
        label=label,
        rows=[row for node in nodes for row in node.rows],
        children=[_merged(group, name) for (name, _), group in below.items()],
    )


def _without_pass_through(node: _Node) -> _Node:
    """``node`` with every inner container that holds one child and nothing besides joined to that child."""
    node.children = [_without_pass_through(_joined(child)) for child in node.children]
    return node


def _joined(node: _Node) -> _Node:
    while len(node.children) == 1 and len(node.rows) == 1 and node.children[0].total == node.total:
        child = node.children[0]
        child.label = " … ".join(f"{node.label}.{part}" for part in child.label.split(" … "))
        node = child
    return node


def _walk(nodes: Sequence[_Node], depth: int = 0) -> Iterator[tuple[int, _Node]]:
    for node in nodes:
        yield depth, node
        yield from _walk(node.children, depth + 1)


def _summed(rows: Sequence[ModuleRow]) -> ModuleRow:
    sums = {name: sum(getattr(row, name) for row in rows) for name in _SIZES}
    return ModuleRow(name=rows[0].name, class_name=rows[0].class_name, **sums)
