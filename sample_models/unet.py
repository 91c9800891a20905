"""U-Net for segmentation, 31M parameters, in fp32: 4 images of 512 x 512, Adam.

Most of its memory is the activations of the two finest levels, kept for the skips and the backward.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

WIDTHS = (64, 128, 256, 512, 1024)
CLASSES = 2
SIDE = 512
BATCH_SIZE = 4


def double_convolution(inputs: int, outputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels in (inputs, outputs):
        layers += [nn.Conv2d(channels, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs)]
        layers += [nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            double_convolution(inputs, outputs) for inputs, outputs in zip((3, *WIDTHS[:-1]), WIDTHS, strict=True)
        )
        finer = WIDTHS[-2::-1]
        self.upsample = nn.ModuleList(nn.ConvTranspose2d(2 * width, width, 2, stride=2) for width in finer)
        self.up = nn.ModuleList(double_convolution(2 * width, width) for width in finer)
        self.head = nn.Conv2d(WIDTHS[0], CLASSES, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for level in self.down[:-1]:
            x = level(x)
            skips.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = self.down[-1](x)
        for upsample, level in zip(self.upsample, self.up, strict=True):
            x = level(torch.cat((skips.pop(), upsample(x)), dim=1))
        return self.head(x)


def build_model() -> nn.Module:
    return UNet()


def make_batch(batch_size: int) -> tuple[Tensor, Tensor]:
    return torch.randn(batch_size, 3, SIDE, SIDE), torch.randint(CLASSES, (batch_size, SIDE, SIDE))


def compute_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    images, masks = batch
    return nn.functional.cross_entropy(model(images), masks)


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=1e-4)
