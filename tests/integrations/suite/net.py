"""A model whose middle activation is a planted excess: it is kept in float32 by a multiplication that needs no copy."""

from __future__ import annotations

from torch import Tensor, nn

WIDTH, WIDE = 256, 1024


class Net(nn.Module):
    """Two layers without biases: 2 x 1 MiB of parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, WIDE, bias=False)
        self.down = nn.Linear(WIDE, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.up(x)
        scores = hidden.float() * hidden  # PLANTED
        return self.down(scores)


def never_called() -> None:
    print("this line is not covered")
