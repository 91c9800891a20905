"""vramdoc: where the GPU memory of a PyTorch training step goes, whether it fits, and what to change.

``vramdoc.profile("model.py", gpu="h100")`` returns a :class:`vramdoc.report.Report`, ``vramdoc.check("model.py",
gpu="h100", budget="60GiB")`` a :class:`vramdoc.gate.Checked`. Importing this package imports neither torch nor anything
else that is slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vramdoc.gate.run import check
    from vramdoc.runner.profile import profile

__version__ = "0.1.0"
__all__ = ["__version__", "check", "profile"]


def __getattr__(name: str) -> Any:
    if name == "profile":
        from vramdoc.runner.profile import profile

        return profile
    if name == "check":
        from vramdoc.gate.run import check

        return check
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
