"""Which blocks a model repeats, on the shapes that models have."""

from __future__ import annotations

import pytest
from torch import nn

from vramdoc.errors import MeasureError
from vramdoc.worker.blocks import find_blocks, path


class Block(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))


class Stage(nn.Module):
    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))
        self.norm = nn.LayerNorm(8)


class Activated(nn.Sequential):
    """A convolution with its norm, as MobileNets are full of."""

    def __init__(self) -> None:
        super().__init__(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4))


class Inverted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(Activated(), Activated(), nn.Conv2d(4, 4, 1))


class Holder(nn.Module):
    def __init__(self, **parts: nn.Module) -> None:
        super().__init__()
        for name, part in parts.items():
            self.add_module(name, part)


def found(model: nn.Module, class_name: str | None = None) -> tuple[str, int, str] | None:
    """Class, number and code; the code, run, gives the very modules."""
    blocks = find_blocks(model, class_name)
    if blocks is None:
        return None
    assert [id(module) for module in eval(blocks.code, {"model": model})] == [id(module) for module in blocks.modules]
    return blocks.class_name, len(blocks.modules), blocks.code


def test_list_of_one_class() -> None:
    """The plain case, and the same below attributes and indexes."""
    layers = nn.ModuleList(Block() for _ in range(3))
    assert found(Holder(tokens=nn.Embedding(64, 8), layers=layers)) == ("Block", 3, "model.layers")
    assert found(nn.Sequential(nn.Linear(8, 8), Holder(layers=layers))) == ("Block", 3, "model[1].layers")


def test_one_class_in_several_lists() -> None:
    """The four stages of a ResNet, or encoder and decoder, are blocks of one class."""
    model = Holder(
        first=nn.Sequential(Block(), Block()), second=nn.Sequential(Block(), Block(), Block()), head=nn.Linear(8, 2)
    )
    code = '[module for module in model.modules() if type(module).__name__ == "Block"]'
    assert found(model) == ("Block", 5, code)


def test_list_with_other_layers() -> None:
    """Blocks between others in one list are picked out."""
    model = nn.Sequential(nn.Linear(8, 8), Block(), nn.ReLU(), Block())
    assert found(model) == ("Block", 2, '[module for module in model.modules() if type(module).__name__ == "Block"]')


def test_blocks_within_blocks() -> None:
    """The many blocks of few stages count, the pieces of a block do not."""
    assert found(Holder(stages=nn.ModuleList(Stage(4) for _ in range(2)))) == (
        "Block", 8, '[module for module in model.modules() if type(module).__name__ == "Block"]',
    )  # fmt: skip
    assert found(nn.Sequential(*(Inverted() for _ in range(3)))) == ("Inverted", 3, "model")


def test_outside_lists() -> None:
    """A class that repeats among attributes is found too; sequences in a list are blocks."""
    model = Holder(down=Block(), middle=nn.Linear(8, 8), up=Block())
    assert found(model) == ("Block", 2, '[module for module in model.modules() if type(module).__name__ == "Block"]')
    levels = nn.ModuleList(nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU()) for _ in range(2))
    assert found(Holder(levels=levels)) == ("Sequential", 2, "model.levels")


def test_nothing_repeats() -> None:
    """Layers are no blocks: a checkpoint around one linear layer saves nothing."""
    assert found(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))) is None
    assert found(nn.LSTM(8, 8)) is None


def test_class_by_name() -> None:
    """``--block`` decides, also for a class that would not be found, and a wrong name is an error."""
    model = Holder(layers=nn.ModuleList(Block() for _ in range(3)), head=nn.Linear(8, 2))
    assert found(model, "Linear") == (
        "Linear", 7, '[module for module in model.modules() if type(module).__name__ == "Linear"]',
    )  # fmt: skip
    with pytest.raises(MeasureError, match="no module of class Layer"):
        find_blocks(model, "Layer")


def test_path() -> None:
    """Names that are no identifiers are reached by get_submodule."""
    assert path("") == "model"
    assert path("layers.0.mlp") == "model.layers[0].mlp"
    assert path("class.x") == "model.get_submodule('class.x')"
