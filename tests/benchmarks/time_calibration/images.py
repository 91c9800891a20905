"""Nets for images and volumes: timm's, SSD300 and nnU-Net."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.benchmarks.time_calibration.recipe import Recipe, Workload, model


@model("timm")
def build_timm(name: str, recipe: Recipe) -> Workload:
    """A model of timm with cross entropy over its classes."""
    import timm

    timm.layers.set_fused_attn(enable=False)  # the pairs are from before timm had it
    net = timm.create_model(name)
    images = torch.randn(recipe.batch, 3, recipe.size, recipe.size)
    if recipe.channels_last:
        net, images = net.to(memory_format=torch.channels_last), images.to(memory_format=torch.channels_last)
    labels = torch.randint(1000, (recipe.batch,))
    return Workload(model=net, loss=lambda net: functional.cross_entropy(net(images), labels))


class SSD300(nn.Module):
    """A ResNet-50 up to its third stage (which keeps 38 x 38), six scales, one head for boxes and classes each."""

    CLASSES, BOXES = 81, (4, 6, 6, 6, 4, 4)
    CHANNELS = (1024, 512, 512, 256, 256, 256)
    WIDTHS = (256, 256, 128, 128, 128)

    def __init__(self) -> None:
        super().__init__()
        import timm

        net = timm.create_model("resnet50")
        for block in (net.layer3[0].conv2, net.layer3[0].downsample[0]):
            block.stride = (1, 1)
        self.backbone = nn.Sequential(net.conv1, net.bn1, net.act1, net.maxpool, net.layer1, net.layer2, net.layer3)
        self.extra = nn.ModuleList()
        for index, (inputs, outputs) in enumerate(zip(self.CHANNELS, self.CHANNELS[1:], strict=False)):
            width, shrinks = self.WIDTHS[index], index < 3
            second = nn.Conv2d(width, outputs, 3, stride=2 if shrinks else 1, padding=int(shrinks), bias=False)
            self.extra.append(
                nn.Sequential(
                    *(nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)),
                    *(second, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)),
                )
            )
        heads = zip(self.CHANNELS, self.BOXES, strict=True)
        self.heads = nn.ModuleList(
            nn.ModuleList((nn.Conv2d(c, n * 4, 3, padding=1), nn.Conv2d(c, n * self.CLASSES, 3, padding=1)))
            for c, n in heads
        )

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        scales = [self.backbone(images)]
        for block in self.extra:
            scales.append(block(scales[-1]))
        boxes = [head[0](x).flatten(2) for head, x in zip(self.heads, scales, strict=True)]
        classes = [head[1](x).flatten(2) for head, x in zip(self.heads, scales, strict=True)]
        batch = images.shape[0]
        return (
            torch.cat([b.reshape(batch, 4, -1) for b in boxes], 2),
            torch.cat([c.reshape(batch, self.CLASSES, -1) for c in classes], 2),
        )


@model("ssd300")
def build_ssd(_: str, recipe: Recipe) -> Workload:
    """SSD300 with its smooth L1 and hard-negative cross entropy."""
    net = SSD300()
    images = torch.randn(recipe.batch, 3, 300, 300)
    if recipe.channels_last:
        net, images = net.to(memory_format=torch.channels_last), images.to(memory_format=torch.channels_last)

    def loss(net: nn.Module) -> Tensor:
        boxes, classes = net(images)
        labels = torch.zeros(boxes.shape[0], boxes.shape[2], dtype=torch.long)
        located = functional.smooth_l1_loss(boxes.float(), torch.zeros_like(boxes).float(), reduction="none").sum(1)
        confidence = functional.cross_entropy(classes.float(), labels, reduction="none")
        _, order = confidence.sort(1, descending=True)
        _, rank = order.sort(1)
        return (located + confidence * (rank < 100)).mean()

    return Workload(model=net, loss=loss)


class NnUNet(nn.Module):
    """nnU-Net: two convolutions with instance norm a level, strided down, transposed up, losses at three levels."""

    def __init__(self, dimensions: int, inputs: int, classes: int, filters: tuple[int, ...]) -> None:
        super().__init__()
        kind = {
            2: (nn.Conv2d, nn.ConvTranspose2d, nn.InstanceNorm2d),
            3: (nn.Conv3d, nn.ConvTranspose3d, nn.InstanceNorm3d),
        }
        self.kinds = kind[dimensions]
        self.down = nn.ModuleList()
        for level, width in enumerate(filters):
            self.down.append(nn.Sequential(*self._pair(inputs, width, 1 if level == 0 else 2)))
            inputs = width
        self.up, self.merge = nn.ModuleList(), nn.ModuleList()
        for width in filters[-2::-1]:
            self.up.append(self.kinds[1](inputs, width, 2, 2, bias=False))
            self.merge.append(nn.Sequential(*self._pair(2 * width, width, 1)))
            inputs = width
        self.heads = nn.ModuleList(self.kinds[0](width, classes, 1) for width in filters[:3])

    def _pair(self, inputs: int, outputs: int, stride: int) -> list[nn.Module]:
        convolution, _, norm = self.kinds
        layers: list[nn.Module] = []
        for source, step in ((inputs, stride), (outputs, 1)):
            layers += [convolution(source, outputs, 3, step, padding=1, bias=False), norm(outputs, affine=True)]
            layers.append(nn.LeakyReLU(0.01, inplace=True))
        return layers

    def forward(self, x: Tensor) -> list[Tensor]:
        levels = []
        for block in self.down:
            x = block(x)
            levels.append(x)
        outputs = []
        for up, merge, skipped in zip(self.up, self.merge, levels[-2::-1], strict=True):
            x = merge(torch.cat([up(x), skipped], 1))
            outputs.append(x)
        return [head(x) for head, x in zip(self.heads, outputs[:-4:-1], strict=True)]


def _dice_and_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    entropy = functional.cross_entropy(logits.float(), labels)
    chances = logits.float().softmax(1)[:, 1:]
    truth = functional.one_hot(labels, logits.shape[1]).movedim(-1, 1)[:, 1:].float()
    axes = tuple(range(2, logits.dim()))
    dice = 2 * (chances * truth).sum(axes) / ((chances * chances).sum(axes) + (truth * truth).sum(axes) + 1e-5)
    return entropy + 1 - dice.mean()


@model("nnunet")
def build_nnunet(dimensions: str, recipe: Recipe) -> Workload:
    """nnU-Net on BraTS: 192 x 160 slices, or cubes of 128."""
    flat = dimensions == "2d"
    filters = (32, 64, 128, 256, 512, 512, 512) if flat else (32, 64, 128, 256, 320, 320)
    net = NnUNet(2 if flat else 3, 5, 4, filters[:6])
    size = (192, 160) if flat else (128, 128, 128)
    volumes = torch.randn(recipe.batch, 5, *size)

    def loss(net: nn.Module) -> Tensor:
        total = torch.zeros(())
        for depth, logits in enumerate(net(volumes)):
            labels = torch.zeros(recipe.batch, *logits.shape[2:], dtype=torch.long)
            total = total + _dice_and_entropy(logits, labels) * 0.5**depth
        return total

    return Workload(model=net, loss=loss)
