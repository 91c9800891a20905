"""A process that ends right after backward() ends cleanly, and so do its children."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from vramdoc import hardware, nullgpu
from vramdoc.runner.devices import device_specs

_LINEAR = """
import torch
model = torch.nn.Linear(4, 4).cuda()
model(torch.randn(2, 4, device="cuda")).sum().backward()
"""
_HOOKS = """
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(4)]).cuda()
for parameter in model.parameters():
    parameter.register_hook(lambda gradient: gradient * 2)
model.register_full_backward_hook(lambda *_: None)
model(torch.randn(2, 8, device="cuda", requires_grad=True)).sum().backward()
"""
_FUNCTION = """
import torch
class Square(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(context, gradient):
        return 2 * context.saved_tensors[0] * gradient
x = torch.randn(4, device="cuda", requires_grad=True)
Square.apply(Square.apply(x)).sum().backward()
"""
_CHILDREN = """
import multiprocessing, subprocess, sys, torch
def work():
    model = torch.nn.Linear(4, 4).cuda()
    model(torch.randn(2, 4, device="cuda")).sum().backward()
if __name__ == "__main__":
    codes = [subprocess.run([sys.executable, sys.argv[1]]).returncode]
    for method in ("fork", "spawn"):
        child = multiprocessing.get_context(method).Process(target=work)
        child.start()
        child.join()
        codes.append(child.exitcode)
    work()
    sys.exit(f"children ended with {codes}" if any(codes) else 0)
"""
_STATUS = _LINEAR + "raise SystemExit(5)\n"


@pytest.mark.parametrize(
    ("source", "runs", "code"),
    [(_LINEAR, 4, 0), (_HOOKS, 2, 0), (_FUNCTION, 2, 0), (_CHILDREN, 1, 0), (_STATUS, 1, 5)],
    ids=["linear", "hooks", "function", "children", "status"],
)
def test_ends_cleanly_after_backward(tmp_path: Path, source: str, runs: int, code: int) -> None:
    """Without the cure most runs abort: autograd's thread is unwound while Python shuts down."""
    script, linear = tmp_path / "script.py", tmp_path / "linear.py"
    script.write_text(source)
    linear.write_text(_LINEAR)
    environment = nullgpu.environment(device_specs(hardware.find("h100")))

    def run(_: int) -> tuple[int, str]:
        command = [sys.executable, str(script), str(linear)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
        return done.returncode, done.stderr

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, range(runs))) == [(code, "")] * runs
