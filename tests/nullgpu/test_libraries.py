"""cuBLAS and cuDNN on the null GPU: what torch allocates for them, to the byte where that is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

OnNullGpu = Callable[..., Any]
NotProvided = Callable[[], list[str]]

PRE_HOPPER_WORKSPACE = 8_519_680  # torch's default ":4096:2:16:8", in KiB
HOPPER_WORKSPACE = 32 << 20


WORKSPACES = """
import torch

def grown(work):
    before = torch.cuda.memory_allocated()
    work()
    return torch.cuda.memory_allocated() - before

x = torch.zeros(64, 64, device="cuda", requires_grad=True)
w = torch.zeros(64, 64, device="cuda", requires_grad=True)
result = {"output": 64 * 64 * 4}
kept = []
result["forward"] = grown(lambda: kept.append(x @ w))
result["again"] = grown(lambda: (x.detach() @ w.detach(), None)[1])
result["backward"] = grown(lambda: kept[0].sum().backward())
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    result["other_stream"] = grown(lambda: (x.detach() @ w.detach(), None)[1])
torch._C._cuda_clearCublasWorkspaces()
result["cleared"] = torch.cuda.memory_allocated()
emit(result)
"""


@pytest.mark.parametrize(("gpu", "workspace"), [("a100-40", PRE_HOPPER_WORKSPACE), ("h100", HOPPER_WORKSPACE)])
def test_each_blas_handle_and_stream_has_a_workspace(on_null_gpu: OnNullGpu, gpu: str, workspace: int) -> None:
    """The autograd thread has a handle of its own: a missing second workspace is the classic error of a prediction."""
    found = on_null_gpu(WORKSPACES, gpu)

    matrix = found["output"]
    assert found["forward"] == workspace + matrix
    assert found["again"] == 0
    assert found["backward"] == workspace + 2 * matrix  # the gradients of x and w
    assert found["other_stream"] == workspace
    assert found["cleared"] == 5 * matrix


CONVOLUTIONS = """
import torch
from torch import nn

found = {}

def run(name, layer, shape, dtype=torch.float32, memory_format=torch.contiguous_format):
    layer = layer.to("cuda", dtype).to(memory_format=memory_format)
    x = torch.randn(shape, device="cuda", dtype=dtype).to(memory_format=memory_format).requires_grad_()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    y = layer(x)
    forward = torch.cuda.memory_allocated() - before
    workspace = torch.cuda.max_memory_allocated() - before - forward
    y.sum().backward()
    fits = x.grad.shape == x.shape and all(p.grad.shape == p.shape for p in layer.parameters())
    kept_format = y.is_contiguous(memory_format=memory_format)
    found[name] = [forward, y.numel() * y.element_size(), workspace, fits, kept_format]

plane, volume = (2, 16, 32, 32), (2, 16, 16, 16, 16)
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    kind = str(dtype).removeprefix("torch.")
    run(f"plain {kind}", nn.Conv2d(16, 32, 3, padding=1, bias=False), plane, dtype)
    run(f"channels_last {kind}", nn.Conv2d(16, 32, 3, padding=1, bias=False), plane, dtype, torch.channels_last)
    run(f"grouped {kind}", nn.Conv2d(16, 32, 3, padding=1, groups=4, bias=False), plane, dtype)
    run(f"transposed {kind}", nn.ConvTranspose2d(16, 32, 2, stride=2, bias=False), plane, dtype)
    run(f"volume {kind}", nn.Conv3d(16, 32, 3, padding=1, bias=False), volume, dtype)
run("dilated line", nn.Conv1d(16, 32, 3, dilation=2, padding=2, bias=False), (2, 16, 512))
for switch in ("benchmark", "deterministic"):
    setattr(torch.backends.cudnn, switch, True)
    run(f"plain {switch}", nn.Conv2d(16, 32, 3, padding=1, bias=False), plane)
    run(f"transposed volume {switch}", nn.ConvTranspose3d(16, 32, 2, stride=2, bias=False), volume)
    setattr(torch.backends.cudnn, switch, False)
emit(found)
"""


@pytest.mark.parametrize("graph_api_disabled", ["0", "1"])
def test_convolutions_allocate_their_output_and_nothing_else(
    on_null_gpu: OnNullGpu, not_provided: NotProvided, monkeypatch: pytest.MonkeyPatch, graph_api_disabled: str
) -> None:
    """Every kind of convolution runs both ways; with a workspace of 0 its output is all that is allocated."""
    monkeypatch.setenv("TORCH_CUDNN_V8_API_DISABLED", graph_api_disabled)
    found = on_null_gpu(CONVOLUTIONS)

    assert len(found) == 20
    for name, (forward, output, workspace, shapes_fit, format_kept) in found.items():
        assert shapes_fit, name
        if graph_api_disabled == "1" and "bfloat16" in name:
            continue  # torch knows no such convolution without the graph API and multiplies matrices instead
        assert forward == output, name
        assert workspace == 0, name
        assert format_kept, name
    assert not_provided() == []


OTHER_LAYERS = """
import torch
import torch.nn.functional as F
from torch import nn

found = {}
def step(name, work):
    before = torch.cuda.memory_allocated()
    out = work()
    found[name] = torch.cuda.memory_allocated() - before
    out.sum().backward()

x = torch.randn(4, 8, 32, 32, device="cuda", requires_grad=True)
norm = nn.BatchNorm2d(8).cuda()
step("norm train", lambda: norm(x))
half = x.detach().half().to(memory_format=torch.channels_last).requires_grad_()
step("norm train half channels_last", lambda: norm(half))
step("norm eval", lambda: norm.eval()(x))
theta = torch.randn(4, 2, 3, device="cuda", requires_grad=True)
grid = F.affine_grid(theta, (4, 8, 32, 32), align_corners=True)
step("sample", lambda: F.grid_sample(x, grid, align_corners=True))

def backward_names(node):
    return [node.name(), *(name for inner, _ in node.next_functions if inner for name in backward_names(inner))]

def loss(where, lengths, longest):
    targets = torch.randint(1, 20, (4 * longest,), dtype=torch.int32, device=where)
    scores = torch.randn(50, 4, 20, device="cuda", requires_grad=True)
    out = F.ctc_loss(scores.log_softmax(2), targets, lengths([50] * 4), lengths([longest] * 4))
    out.backward()
    return [scores.grad.shape == scores.shape, any("Cudnn" in name for name in backward_names(out.grad_fn))]

on_device = lambda values: torch.tensor(values, dtype=torch.int32, device="cuda")
found["ctc"] = [loss("cpu", list, 10), loss("cuda", on_device, 12)]
emit(found)
"""


def test_norms_samplers_and_ctc_run_both_ways(on_null_gpu: OnNullGpu, not_provided: NotProvided) -> None:
    """The other cuDNN layers: batch norm keeps mean and deviation of each channel, one 512-byte block each."""
    found = on_null_gpu(OTHER_LAYERS)

    output = 4 * 8 * 32 * 32 * 4
    assert found["norm train"] == output + 2 * 512
    assert found["norm train half channels_last"] == output // 2 + 2 * 512
    assert found["norm eval"] == output
    assert found["sample"] == output
    assert found["ctc"] == [[True, True], [True, True]]
    assert not_provided() == []


RECURRENT = """
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

def kept(kind, mode):
    layer = kind(123, 320, 4).cuda()
    x = torch.zeros(250, 100, 123, device="cuda")
    state = torch.zeros(4, 100, 320, device="cuda")
    cell = state.clone() if mode == 2 else None
    torch.cuda.reset_peak_memory_stats()
    out = torch._cudnn_rnn(
        x, layer._flat_weights, 4, None, state, cell, mode, 320, 0, 4, False, 0.0, True, False, [], None
    )
    return [out[3].numel(), torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()]

def run(kind, packed=False, **options):
    layer = kind(24, 32, **options).cuda()
    x = torch.randn(7, 5, 24, device="cuda", requires_grad=True)
    out, state = layer(pack_padded_sequence(x, torch.tensor([7, 6, 4, 3, 2])) if packed else x)
    (out.data if packed else out).sum().backward()
    parameters = list(layer.parameters())
    storages = {p.untyped_storage().data_ptr(): p.untyped_storage().nbytes() for p in parameters}
    wanted = sum(p.nbytes for p in parameters)
    shape = list((out.data if packed else out).shape)
    return [wanted, list(storages.values()), shape, all(p.grad is not None for p in parameters)]

found = {"published": [kept(nn.LSTM, 2), kept(nn.GRU, 3)]}
flat = list(nn.LSTM(512, 100).cuda().parameters())
found["places"] = [flat[0].untyped_storage().nbytes() // 4, [p.storage_offset() for p in flat]]
for kind in (nn.LSTM, nn.GRU, nn.RNN):
    for packed in (False, True):
        found[f"{kind.__name__} deep {packed}"] = run(kind, packed, num_layers=3, dropout=0.3)
        found[f"{kind.__name__} both ways {packed}"] = run(kind, packed, num_layers=2, bidirectional=True)
found["LSTM projected"] = run(nn.LSTM, num_layers=2, bidirectional=True, proj_size=12)
emit(found)
"""


def test_recurrent_layers_keep_what_was_measured(on_null_gpu: OnNullGpu, not_provided: NotProvided) -> None:
    """Weights are the parameters, and the reserve space is the one published in pytorch/pytorch#2895 (P100)."""
    found = on_null_gpu(RECURRENT)

    assert found.pop("places") == [245_600, [0, 204_800, 244_800, 245_200]]  # as printed in pytorch/pytorch#57632
    lstm, gru = found.pop("published")
    assert lstm == [736_000_000, 17_730_560]  # reserve space, workspace
    assert gru == [864_000_000, 13_169_920 + 256]  # torch's allocator rounds to 512 bytes
    rows = {"deep False": [7, 5, 32], "both ways False": [7, 5, 64], "deep True": [22, 32], "both ways True": [22, 64]}
    assert len(found) == 13
    for name, (parameter_bytes, storages, shape, has_gradients) in found.items():
        assert storages == [parameter_bytes], name
        assert shape == rows.get(name.split(" ", 1)[1], [7, 5, 24]), name
        assert has_gradients, name
    assert not_provided() == []


ATTENTION = """
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend

def attend(dtype, masked):
    q, k, v = (torch.randn(2, 4, 256, 64, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3))
    mask = torch.zeros(2, 4, 256, 256, device="cuda", dtype=dtype) if masked else None
    choice = SDPBackend(torch._fused_sdp_choice(q, k, v, mask, 0.0, not masked)).name
    before = torch.cuda.memory_allocated()
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=not masked)
    kept = torch.cuda.memory_allocated() - before
    out.sum().backward()
    return [choice, kept, q.grad.shape == q.shape]

kinds = {"float": torch.float32, "half": torch.float16, "bfloat": torch.bfloat16}
emit({f"{name}{' masked' * masked}": attend(dtype, masked) for name, dtype in kinds.items() for masked in (0, 1)})
"""

CHOICES = {
    "h100": {
        "float": "EFFICIENT",
        "float masked": "EFFICIENT",
        "half": "CUDNN",
        "half masked": "CUDNN",
        "bfloat": "CUDNN",
        "bfloat masked": "CUDNN",
    },
    "a100-40": {
        "float": "EFFICIENT",
        "float masked": "EFFICIENT",
        "half": "FLASH",
        "half masked": "EFFICIENT",
        "bfloat": "FLASH",
        "bfloat masked": "EFFICIENT",
    },
    "t4": {
        "float": "EFFICIENT",
        "float masked": "EFFICIENT",
        "half": "EFFICIENT",
        "half masked": "EFFICIENT",
        "bfloat": "MATH",
        "bfloat masked": "MATH",
    },
}


@pytest.mark.parametrize("gpu", CHOICES)
def test_attention_is_the_one_the_device_would_get(on_null_gpu: OnNullGpu, not_provided: NotProvided, gpu: str) -> None:
    """Which attention runs decides whether T x T scores exist: it follows from the device, as on the real one."""
    found = on_null_gpu(ATTENTION, gpu)

    assert {name: choice.removesuffix("_ATTENTION") for name, (choice, _, _) in found.items()} == CHOICES[gpu]
    for name, (choice, kept, shapes_fit) in found.items():
        assert shapes_fit, name
        output = 2 * 4 * 256 * 64 * (4 if name.startswith("float") else 2)
        statistics = 2 * 4 * 256 * 4
        if choice != "MATH":  # output and softmax statistics; two numbers of the random generator
            assert output + statistics <= kept <= output + statistics + 1024, name
    assert not_provided() == []


UNKNOWN_CALLS = """
import ctypes

engine = ctypes.CDLL(None)  # it is preloaded
created = ctypes.c_void_p()
assert engine.cudnnBackendCreateDescriptor(5, ctypes.byref(created)) == 0
value, count = ctypes.c_int64(), ctypes.c_int64()
read = lambda name: engine.cudnnBackendGetAttribute(
    created, name, 3, ctypes.c_int64(1), ctypes.byref(count), ctypes.byref(value)
)
emit([read(402), value.value, read(4321), engine.nvshmemx_putmem_on_stream(), engine.cusparseLtSpMMACompressedSize2(
    None, (ctypes.c_int64 * 64)(8, 8, 99), ctypes.byref(value), None
)])
"""


def test_an_unknown_call_or_size_fails_by_name(on_null_gpu: OnNullGpu, not_provided: NotProvided) -> None:
    """A size that nobody knows must not silently be 0: the call fails, and says which it is."""
    assert on_null_gpu(UNKNOWN_CALLS) == [0, 0, 3000, 7, 10]
    assert not_provided() == [
        "cudnnBackendGetAttribute of attribute 4321",
        "nvshmemx_putmem_on_stream",
        "cusparseLtSpMMACompressedSize2 of this data type",
    ]
