"""Down and up again: strided and transposed convolutions, group norm, a skip; momentum, gradients kept as zeros."""

import torch
from torch import nn

WIDTH, SIDE = 32, 48
BATCH_SIZE = 6


def norm_and_activation(width):
    return nn.Sequential(nn.GroupNorm(8, width), nn.SiLU())


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, WIDTH, 3, padding=1)
        self.down = nn.Sequential(norm_and_activation(WIDTH), nn.Conv2d(WIDTH, 2 * WIDTH, 4, stride=2, padding=1))
        self.middle = nn.Sequential(norm_and_activation(2 * WIDTH), nn.Conv2d(2 * WIDTH, 16 * WIDTH, 3, padding=1))
        self.up = nn.Sequential(
            norm_and_activation(16 * WIDTH), nn.ConvTranspose2d(16 * WIDTH, WIDTH, 4, stride=2, padding=1)
        )
        self.out = nn.Conv2d(2 * WIDTH, 3, 3, padding=1)

    def forward(self, images):
        high = self.stem(images)
        return self.out(torch.cat([high, self.up(self.middle(self.down(high)))], dim=1))


def build_model():
    return Model()


def make_batch(batch_size):
    return torch.randn(batch_size, 3, SIDE, SIDE)


def compute_loss(model, images):
    return nn.functional.mse_loss(model(images), images)


def make_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def clear_gradients(optimizer):
    optimizer.zero_grad(set_to_none=False)
