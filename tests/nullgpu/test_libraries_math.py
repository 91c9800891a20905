"""Linear algebra, transforms, sparse matrices and run-time compiled kernels on the null GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

OnNullGpu = Callable[..., Any]
NotProvided = Callable[[], list[str]]


DENSE = """
import torch

matrices = {
    "one": torch.randn(96, 96, device="cuda"),
    "batch": torch.randn(5, 24, 24, device="cuda"),
    "complex": torch.randn(24, 24, device="cuda", dtype=torch.complex64),
    "double": torch.randn(40, 40, device="cuda", dtype=torch.float64),
}
alone = ["cholesky", "det", "eigh", "eigvalsh", "inv", "ldl_factor", "lu", "lu_factor", "matrix_rank", "pinv", "qr"]
alone += ["slogdet", "svd", "svdvals"]
paired = ["solve", "lstsq"]
shapes, failed = {}, {}

def run(name, work):
    try:
        out = work()
        shapes[name] = [list(t.shape) for t in (out if isinstance(out, tuple) else (out,))]
    except Exception as error:
        failed[name] = f"{type(error).__name__}: {error}"

for kind, matrix in matrices.items():
    for name in alone:
        run(f"{name} {kind}", lambda: tuple(getattr(torch.linalg, name)(matrix))
            if name not in ("cholesky", "det", "eigvalsh", "inv", "matrix_rank", "pinv", "svdvals")
            else getattr(torch.linalg, name)(matrix))
    for name in paired:
        run(f"{name} {kind}", lambda: getattr(torch.linalg, name)(matrix, matrix)[0])
    run(f"triangular {kind}", lambda: torch.linalg.solve_triangular(matrix, matrix, upper=True))
    run(f"ormqr {kind}", lambda: torch.ormqr(matrix, matrix[..., 0], matrix))
tall = torch.randn(8, 64, 32, device="cuda")
for driver in ("gesvd", "gesvdj", "gesvda"):
    run(f"svd by {driver}", lambda: tuple(torch.linalg.svd(tall, full_matrices=False, driver=driver)))
matrix = torch.randn(64, 64, device="cuda", requires_grad=True)
run("gradients", lambda: (torch.linalg.inv(matrix).sum() + torch.linalg.qr(matrix).R.sum()).backward() or matrix.grad)
emit([shapes, failed])
"""


def test_linear_algebra_runs_and_keeps_shapes(on_null_gpu: OnNullGpu, not_provided: NotProvided) -> None:
    """Status values of a factorization must read as success, or torch reports a singular matrix that nobody has."""
    shapes, failed = on_null_gpu(DENSE)

    assert failed == {}
    assert shapes["svd one"] == [[96, 96], [96], [96, 96]]
    assert shapes["eigh batch"] == [[5, 24], [5, 24, 24]]
    assert shapes["lu double"] == [[40, 40], [40, 40], [40, 40]]
    for driver in ("gesvd", "gesvdj", "gesvda"):
        assert shapes[f"svd by {driver}"] == [[8, 64, 32], [8, 32], [8, 32, 32]]
    assert shapes["gradients"] == [[64, 64]]
    assert len(shapes) == 4 * (14 + 2 + 2) + 4
    assert not_provided() == []


SPARSE_AND_TRANSFORMS = """
import torch
import torch.nn.functional as F
from torch.sparse import SparseSemiStructuredTensor, to_sparse_semi_structured

found = {}
x = torch.randn(16, 64, 64, device="cuda", dtype=torch.complex64)
torch.fft.fft2(x)
torch.backends.cuda.cufft_plan_cache.clear()
torch.cuda.reset_peak_memory_stats()
before = torch.cuda.memory_allocated()
y = torch.fft.fft2(x)
found["fft peak"] = [torch.cuda.max_memory_allocated() - before, x.nbytes]
real = torch.randn(4, 64, 64, device="cuda", requires_grad=True)
for name in ("fft", "ifft", "rfft", "irfft", "fft2", "rfft2", "fftn", "hfft"):
    getattr(torch.fft, name)(real).abs().sum().backward()
torch.stft(real[0], 16, window=torch.ones(16, device="cuda"), return_complex=True).abs().sum().backward()

csr = torch.eye(64).to_sparse_csr().cuda()
coo = torch.eye(64).to_sparse().cuda()
dense = torch.randn(64, 32, device="cuda", requires_grad=True)
found["products"] = [list((m @ d).shape) for m in (csr, coo) for d in (dense.detach(), dense.detach()[:, 0])]
torch.sparse.mm(coo, dense).sum().backward()
shifted = torch.eye(64).roll(1, 0).to_sparse_csr().cuda()
found["entries"] = [(csr + shifted)._nnz(), (csr @ csr)._nnz()]
found["sampled"] = torch.sparse.sampled_addmm(csr, dense.detach(), dense.detach().t())._nnz()
found["triangular"] = list(torch.triangular_solve(dense.detach(), csr)[0].shape)

SparseSemiStructuredTensor._FORCE_CUTLASS = False
alive = []
for name, dtype in (("half", torch.float16), ("byte", torch.int8)):
    weight = torch.tensor([0, 0, 1, 1]).tile(128, 32).to("cuda", dtype)
    before = torch.cuda.memory_allocated()
    half = to_sparse_semi_structured(weight)
    alive += [weight, half]
    found[f"2:4 {name}"] = [torch.cuda.memory_allocated() - before, weight.nbytes]
    out = F.linear(torch.zeros(64, 128, device="cuda", dtype=dtype), half)
    found[f"2:4 {name} product"] = list(out.shape)
emit(found)
"""


def test_sparse_and_transforms(on_null_gpu: OnNullGpu, not_provided: NotProvided) -> None:
    """2:4 weights take 9/16 (10/16 as bytes) of the dense ones, and a transform a work area of its data's size."""
    found = on_null_gpu(SPARSE_AND_TRANSFORMS)

    peak, data = found["fft peak"]
    assert peak == 2 * data  # output and work area
    assert found["products"] == [[64, 32], [64], [64, 32], [64]]
    assert found["entries"] == [128, 64]  # a sum: nothing coincides; a product: spread evenly
    assert found["sampled"] == 64
    assert found["triangular"] == [64, 32]
    for name, share in (("half", 9), ("byte", 10)):
        stored, dense = found[f"2:4 {name}"]
        assert stored == dense * share // 16
        assert found[f"2:4 {name} product"] == [64, 128]
    assert not_provided() == []


KERNELS = """
import os
import torch


found = {}
square = torch.cuda.jiterator._create_jit_fn("template <typename T> T square(T x) { return x * x; }")
ones = torch.ones(1000, device="cuda")
found["jiterator"] = list(square(ones).shape)
found["complex"] = list(ones.to(torch.complex64).abs().shape)
found["bessel"] = list(torch.special.bessel_j0(ones).shape)
long = torch.randn(100_000, device="cuda")
found["sort"] = list(long.sort().values.shape)
found["topk"] = list(torch.randn(8, 50_000, device="cuda").topk(50).values.shape)
found["scan"] = list(long.cumsum(0).shape)
found["permutation"] = list(torch.randperm(100_000, device="cuda").shape)
found["draw"] = list(torch.multinomial(torch.ones(4, 100, device="cuda"), 5).shape)
torch.cuda.manual_seed(0)
state = torch.cuda.get_rng_state()
torch.nn.functional.dropout(ones)
found["generator"] = bool((torch.cuda.get_rng_state() != state).any())
kept = torch.arange(1000, dtype=torch.int32).cuda()
file = torch.cuda.gds.GdsFile(os.environ["VRAMDOC_TEST_RESULT"] + ".storage", os.O_CREAT | os.O_RDWR)
file.save_storage(kept.untyped_storage())
read = torch.empty_like(kept)
file.load_storage(read.untyped_storage())
found["file"] = int(read[-1])
ops = torch.ops.aten
byte = torch.zeros(64, 64, device="cuda", dtype=torch.int8)
found["int8"] = list(torch._int_mm(byte, byte.t()).shape)
eight = byte.to(torch.float8_e4m3fn)
one = torch.ones((), device="cuda")
found["float8"] = list(torch._scaled_mm(eight, eight.t(), one, one, out_dtype=torch.bfloat16).shape)
weights = torch.zeros(4, 64, 64, device="cuda", dtype=torch.bfloat16)
ends = torch.tensor([16, 32, 48, 64], device="cuda", dtype=torch.int32)
found["grouped"] = list(torch._grouped_mm(weights[0], weights, ends).shape)
plain = torch.zeros(64, 64, device="cuda")
found["fused"] = list(ops._addmm_activation(plain[0], plain, plain, use_gelu=True).shape)
found["dot"] = list(torch.dot(plain[0].half(), plain[0].half()).shape)
emit(found)
"""


def test_compiled_kernels_sorts_and_special_products(on_null_gpu: OnNullGpu, not_provided: NotProvided) -> None:
    """NVRTC, CUB, cuFile and the products of narrow types: each asks the device for something that must be answered."""
    found = on_null_gpu(KERNELS, "h100")

    square = [64, 64]
    assert found == {
        "jiterator": [1000],
        "complex": [1000],
        "bessel": [1000],
        "sort": [100_000],
        "topk": [8, 50],
        "scan": [100_000],
        "permutation": [100_000],
        "draw": [4, 5],
        "generator": True,
        "file": 999,
        "int8": square,
        "float8": square,
        "grouped": square,
        "fused": square,
        "dot": [],
    }
    assert not_provided() == []
