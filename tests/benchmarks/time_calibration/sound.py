"""Speech recognition by one-dimensional convolutions: Jasper 10x5 and QuartzNet 10x5."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.benchmarks.time_calibration.recipe import Recipe, Workload, model

_JASPER = ((256, 11), (384, 13), (512, 17), (640, 21), (768, 25))
_QUARTZ = ((256, 33), (256, 39), (512, 51), (512, 63), (512, 75))
_TOKENS = 29


class Block(nn.Module):
    """Five convolutions, and a residual from each input given, summed before the last activation."""

    def __init__(self, inputs: list[int], width: int, kernel: int, *, separable: bool, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        source = inputs[-1]
        for _ in range(5):
            self.layers.append(_convolution(source, width, kernel, separable=separable))
            source = width
        self.residuals = nn.ModuleList(
            nn.Sequential(nn.Conv1d(i, width, 1, bias=False), nn.BatchNorm1d(width)) for i in inputs
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs: list[Tensor]) -> Tensor:
        x = inputs[-1]
        for index, layer in enumerate(self.layers):
            x = layer(x)
            if index == len(self.layers) - 1:
                for residual, source in zip(self.residuals, inputs, strict=True):
                    x = x + residual(source)
            x = self.dropout(functional.relu(x))
        return x


def _convolution(inputs: int, outputs: int, kernel: int, *, separable: bool = False, **options: int) -> nn.Sequential:
    padding = options.get("dilation", 1) * (kernel - 1) // 2
    if not separable:
        return nn.Sequential(
            nn.Conv1d(inputs, outputs, kernel, padding=padding, bias=False, **options), nn.BatchNorm1d(outputs)
        )
    return nn.Sequential(
        nn.Conv1d(inputs, inputs, kernel, padding=padding, groups=inputs, bias=False, **options),
        nn.Conv1d(inputs, outputs, 1, bias=False),
        nn.BatchNorm1d(outputs),
    )


class SpeechNet(nn.Module):
    """A prologue that halves time, ten blocks, an epilogue. Jasper's residuals come from every block before."""

    def __init__(self, *, quartz: bool) -> None:
        super().__init__()
        self.dense = not quartz
        plain = {"separable": quartz}
        self.prologue = _convolution(64, 256, 33 if quartz else 11, stride=2, **plain)
        widths, self.blocks = [256], nn.ModuleList()
        for width, kernel in _QUARTZ if quartz else _JASPER:
            for _ in range(2):
                inputs = widths if self.dense else widths[-1:]
                self.blocks.append(Block(list(inputs), width, kernel, dropout=0.0 if quartz else 0.2, **plain))
                widths.append(width)
        last = 512 if quartz else 896
        self.epilogue = nn.Sequential(
            *(_convolution(widths[-1], last, 87 if quartz else 29, dilation=2, **plain), nn.ReLU()),
            *(_convolution(last, 1024, 1), nn.ReLU(), nn.Conv1d(1024, _TOKENS, 1)),
        )

    def forward(self, sound: Tensor) -> Tensor:
        history = [functional.relu(self.prologue(sound))]
        for block in self.blocks:
            made = block(history)
            history = [*history, made] if self.dense else [made]
        return self.epilogue(history[-1])


@model("speech")
def build_speech(name: str, recipe: Recipe) -> Workload:
    """Jasper or QuartzNet with CTC; the size is the number of frames."""
    net = SpeechNet(quartz=name == "quartznet")
    sound = torch.randn(recipe.batch, 64, recipe.size)
    targets = torch.randint(1, _TOKENS, (recipe.batch, 180))

    def loss(net: nn.Module) -> Tensor:
        logits = net(sound).permute(2, 0, 1).float().log_softmax(-1)
        return functional.ctc_loss(logits, targets, (logits.shape[0],) * recipe.batch, (180,) * recipe.batch)

    return Workload(model=net, loss=loss)
