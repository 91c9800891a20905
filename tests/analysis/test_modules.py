"""The module table as a tree."""

from __future__ import annotations

from tests.report.samples import gpt2, module_row
from vramdoc.analysis.modules import ModuleLine, module_lines

MIB = 1024**2


def outline(lines: tuple[ModuleLine, ...]) -> list[tuple[int, str, int]]:
    """Depth, label and count of each line."""
    return [(line.depth, line.label, line.count) for line in lines]


def test_repeated_layers_become_one_line() -> None:
    """Twelve equal blocks are one fact: their sum, and what each kind of child holds in all of them."""
    lines = module_lines(gpt2().modules, limit=100)
    assert outline(lines) == [
        (0, "", 1),
        (1, "transformer", 1),
        (2, "wte", 1),
        (2, "wpe", 1),
        (2, "h.0 … h.11", 12),
        *((3, name, 12) for name in ("ln_1", "attn", "ln_2", "mlp")),
        (2, "ln_f", 1),
        (1, "lm_head", 1),
    ]
    attention = lines[6].sizes
    assert attention.activation_bytes == 12 * 260_046_848
    assert attention.parameter_bytes == 12 * 9_451_520


def test_only_neighbours_of_one_class_fold() -> None:
    """In a Sequential, a convolution between two activations is not one of them."""
    rows = [module_row("", "Net", 0, 70)]
    for index, name in enumerate(["Conv2d", "Conv2d", "ReLU", "Conv2d"]):
        rows.append(module_row(str(index), name, 0, 10 + index))
    assert outline(module_lines(rows, limit=100)) == [(0, "", 1), (1, "0 … 1", 2), (1, "2", 1), (1, "3", 1)]


def test_nested_repeats_fold_inside_repeats() -> None:
    """Experts within layers: one line for all layers, one below it for all their experts."""
    rows = [module_row("", "MoE", 0, 64 * MIB)]
    for layer in range(4):
        rows.append(module_row(f"layers.{layer}", "Layer", 0, 16 * MIB))
        rows += [module_row(f"layers.{layer}.experts.{expert}", "Expert", 0, 2 * MIB) for expert in range(8)]
    lines = module_lines(rows, limit=100)
    assert outline(lines) == [(0, "", 1), (1, "layers.0 … layers.3", 4), (2, "experts.0 … experts.7", 32)]
    assert lines[2].sizes.total_bytes == 64 * MIB


def test_limit_keeps_the_largest_below_their_parents() -> None:
    """A short table shows what matters, and no child without its parent."""
    lines = module_lines(gpt2().modules, limit=4)
    assert outline(lines) == [(0, "", 1), (1, "transformer", 1), (2, "h.0 … h.11", 12), (3, "mlp", 12)]


def test_small_modules_are_left_out() -> None:
    """Below the least size a line only takes room."""
    rows = [module_row("", "Net", 0, 100), module_row("a", "A", 0, 99), module_row("b", "B", 0, 1)]
    assert outline(module_lines(rows, limit=10, least_bytes=50)) == [(0, "", 1), (1, "a", 1)]


def test_rows_without_a_root() -> None:
    """A table need not start at the model: what has no parent in it stands at the top."""
    rows = [module_row("encoder.block", "Block", 0, 5), module_row("encoder.block.norm", "Norm", 0, 2)]
    assert outline(module_lines(rows, limit=10)) == [(0, "encoder.block", 1), (1, "norm", 1)]


def test_nothing_gives_nothing() -> None:
    """A target without modules has an empty table, not an error."""
    assert module_lines([], limit=10) == ()
