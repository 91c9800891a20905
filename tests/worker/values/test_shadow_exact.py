"""Values that derive from host data are exact, however the program moves them about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CODE = """
import torch
from vramdoc.worker.values import ValueShadow

found = {}
with ValueShadow({}) as shadow:
    cuda = torch.device("cuda")
    found["tensor"] = torch.tensor([1, 2], device=cuda).tolist()
    x = torch.arange(10, device=cuda)
    x[2:4] = 7
    x.view(2, 5)[:, 1].add_(100)
    x.detach()[0] = 3
    found["views"] = x.tolist()
    parts = torch.empty(6, device=cuda)
    parts[:3] = 1
    found["part"] = parts[:3].tolist()
    parts[3:] = 2
    found["parts"] = parts.tolist()
    mask = x > 5
    found["nonzero"] = mask.nonzero().squeeze(1).tolist()
    found["index"] = x[mask].tolist()
    found["masked_select"] = torch.masked_select(x, mask).tolist()
    x[mask] = torch.zeros(7, dtype=torch.long, device=cuda)
    x[x == 4] = 3
    found["index_put"] = x.tolist()
    found["unique"] = [part.tolist() for part in torch.unique(x, return_inverse=True, return_counts=True)]
    found["bincount"] = torch.bincount(x).tolist()
    found["histc"] = torch.histc(x, bins=6, min=0, max=5).tolist()
    found["repeat"] = torch.arange(3, device=cuda).repeat_interleave(torch.tensor([1, 0, 2], device=cuda)).tolist()
    found["one_hot"] = list(torch.nn.functional.one_hot(x).shape)
    found["equal"] = [torch.equal(x, x.clone()), torch.allclose(x.float(), x.float() + 1)]
    found["split"] = [len(part) for part in torch.arange(6).cuda().split(torch.tensor([4, 2], device=cuda).tolist())]
    found["bfloat16"] = torch.ones(4, dtype=torch.bfloat16, device=cuda).mul(3).sum().item()
    found["conjugate"] = torch.ones(2, dtype=torch.complex64, device=cuda).mul(2j).conj().imag.tolist()
    large = torch.empty(4096, 4096, device=cuda)
    steps = [torch.ones(1, device=cuda), large]
    torch._foreach_add_(steps, 2)
    found["foreach"] = steps[0].item()
    with torch.inference_mode():
        ones = torch.ones(2, 2, device=cuda)
        found["inference"] = torch.nn.functional.linear(ones, ones).sum().item()
    weight = torch.ones(4, 4, device=cuda, requires_grad=True)
    chosen = (weight * 2)[torch.tensor([True, False, True, False], device=cuda)]
    chosen.sum().backward()  # backward indexes by the mask once more
    found["backward"] = [list(chosen.shape), list(weight.grad.shape)]
    moved = torch.tensor([5], device=cuda).to(torch.int32).cpu()
    found["host"] = (moved * 2).cuda().item()
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    torch.rand(100, device=cuda)
    found["random stream"] = torch.equal(expected, torch.rand(2))
    found["exact"] = shadow.exact
    # From here on nothing may pass for exact.
    parts.copy_(large[0, :6])
    parts.sum().item()
    found["overwritten"] = [(a.op, a.rule, a.reads) for a in shadow.assumptions()]
    big_mask = large > 0
    found["full"] = big_mask[:10].nonzero().shape[0]
    lines = {a.op: a.line for a in shadow.assumptions()}
    found["line"] = lines["aten.nonzero"] - lines["aten._local_scalar_dense"]
    found["file"] = shadow.assumptions()[0].file == __file__
emit(found)
"""


EXPECTED = {
    "tensor": [1, 2],
    "views": [3, 101, 7, 7, 4, 5, 106, 7, 8, 9],
    "part": [1, 1, 1],
    "parts": [1, 1, 1, 2, 2, 2],
    "nonzero": [1, 2, 3, 6, 7, 8, 9],
    "index": [101, 7, 7, 106, 7, 8, 9],
    "masked_select": [101, 7, 7, 106, 7, 8, 9],
    "index_put": [3, 0, 0, 0, 3, 5, 0, 0, 0, 0],
    "unique": [[0, 3, 5], [1, 0, 0, 0, 1, 2, 0, 0, 0, 0], [7, 2, 1]],
    "bincount": [7, 0, 0, 2, 0, 1],
    "histc": [7, 0, 0, 2, 0, 1],
    "repeat": [0, 2, 2],
    "one_hot": [10, 6],
    "equal": [True, False],
    "split": [4, 2],
    "bfloat16": 12.0,
    "conjugate": [-2.0, -2.0],
    "foreach": 3.0,
    "inference": 8.0,
    "backward": [[2, 4], [4, 4]],
    "host": 10,
    "random stream": True,
    "exact": True,
    "overwritten": [["aten._local_scalar_dense", "finite", 1]],
    "full": 10 * 4096,
    "line": 3,
    "file": True,
}


def test_values_from_the_host_are_exact(on_null_gpu: Callable[..., Any]) -> None:
    """Each operator that reads a value back must see what a real GPU would hold, and note nothing."""
    found = on_null_gpu(CODE)
    assert found == EXPECTED
