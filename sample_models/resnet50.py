"""ResNet-50 on ImageNet in fp32: 64 images of 224 x 224, SGD with momentum.

``CHANNELS_LAST`` keeps images and weights in the layout that tensor cores prefer.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # width, blocks, stride of the first block
EXPANSION = 4
CLASSES = 1000
CHANNELS_LAST = False
BATCH_SIZE = 64


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False), nn.BatchNorm2d(outputs)
    )


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * EXPANSION
        self.reduce = convolution(inputs, width, 1)
        self.spatial = convolution(width, width, 3, stride)
        self.expand = convolution(width, outputs, 1)
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else convolution(inputs, outputs, 1, stride)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.reduce(x))
        y = self.relu(self.spatial(y))
        return self.relu(self.expand(y) + self.shortcut(x))


class ResNet50(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            convolution(3, 64, 7, stride=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2, padding=1)
        )
        blocks, inputs = [], 64
        for width, count, stride in STAGES:
            for index in range(count):
                blocks.append(Bottleneck(inputs, width, stride if index == 0 else 1))
                inputs = width * EXPANSION
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, CLASSES)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(images)).mean((2, 3)))


def build_model() -> nn.Module:
    model = ResNet50()
    return model.to(memory_format=torch.channels_last) if CHANNELS_LAST else model


def make_batch(batch_size: int) -> tuple[Tensor, Tensor]:
    images = torch.randn(batch_size, 3, 224, 224)
    if CHANNELS_LAST:
        images = images.to(memory_format=torch.channels_last)
    return images, torch.randint(CLASSES, (batch_size,))


def compute_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    images, labels = batch
    return nn.functional.cross_entropy(model(images), labels)


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
