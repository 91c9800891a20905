"""Every error that vramdoc raises on purpose.

::

    VramdocError                  exit code 2
    ├── UsageError                2  a flag, an argument or a configuration key is wrong
    │   └── UnknownGpuError       2  a GPU name that the tables do not list
    ├── InstallError              2  torch or the null GPU is missing or cannot be used here
    ├── ReportError               2  a report file cannot be read or written
    ├── WorkerError               2  the worker died, or answered nonsense
    ├── MeasureError              2  a change to the training loop does not apply to this target
    └── TargetError               3  the user's code failed to load or run
        └── TargetTimeoutError    3  the user's code did not end in time

A message names the thing and the reason; ``hint`` says the next step. The command line prints both and
exits with ``exit_code``; a ``TargetError`` also carries the user's own traceback, trimmed to their code.
"""

from __future__ import annotations


class VramdocError(Exception):
    """Base of the tree. ``hint`` is one line that says what to do next, or empty."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(VramdocError):
    """A flag, an argument or a configuration key is wrong."""


class UnknownGpuError(UsageError):
    """A GPU name that the tables do not list; the hint names the nearest ones."""


class InstallError(VramdocError):
    """Torch or the null GPU is missing, or this torch cannot be served."""


class ReportError(VramdocError):
    """A report file cannot be read or written."""


class WorkerError(VramdocError):
    """The worker process died or broke the protocol: not the user's fault."""


class MeasureError(VramdocError):
    """A change to the training loop does not apply to this target; the message is the reason."""


class TargetError(VramdocError):
    """The user's code failed. ``traceback`` is theirs, trimmed to their files ("" where there is none).

    ``unknown_reads`` counts the values that it had read from a null GPU and that nobody knew: they may be why.
    """

    exit_code = 3

    def __init__(self, message: str, *, hint: str = "", traceback: str = "", unknown_reads: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.traceback = traceback
        self.unknown_reads = unknown_reads


class TargetTimeoutError(TargetError):
    """The user's code did not end within ``--timeout`` seconds."""
