"""The worker process: ``python -m vramdoc.worker REQUESTS MESSAGES [--null]``.

``REQUESTS`` and ``MESSAGES`` are inherited file descriptors that carry JSON lines. With ``--null`` the process is a
zygote: it imports torch once, never touches CUDA, and forks a child for each request, since cached workspaces would
change the next number. Without it, one request is measured in this process.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
import warnings
from io import FileIO
from pathlib import Path

import msgspec

from vramdoc.errors import InstallError, MeasureError, TargetError, TargetTimeoutError, VramdocError
from vramdoc.report.measurement import Failure, Message, Request
from vramdoc.worker.lifetime import end_with_parent
from vramdoc.worker.preload import preload, preload_measures


class _Channel:
    """Writes messages, one JSON line each, whole."""

    def __init__(self, descriptor: int) -> None:
        self._stream = FileIO(descriptor, "w")

    def send(self, message: Message) -> None:
        line = memoryview(msgspec.json.encode(message) + b"\n")
        while line:
            line = line[self._stream.write(line) or 0 :]


def main(arguments: list[str]) -> int:
    """Serves requests until their pipe closes."""
    requests, channel, null = int(arguments[0]), _Channel(int(arguments[1])), "--null" in arguments
    end_with_parent()
    # What user code prints belongs on stderr: stdout is the parent's, for the result.
    os.dup2(2, 1)
    failure = _import_torch(null=null)
    if failure:
        channel.send(Message(event="failed", failure=failure))
        return 0
    channel.send(Message(event="ready"))
    with open(requests, "rb") as stream:
        for line in stream:
            request = msgspec.json.decode(line, type=Request)
            if null:
                preload(Path(request.target))
                preload_measures(request.measures)
                # What a fork shares stays shared: a child's collector does not write to what is there now.
                gc.freeze()
                _serve_in_child(request, channel)
            else:
                channel.send(_serve(request, channel, null=False))
    return 0


def _import_torch(*, null: bool) -> Failure | None:
    # torch says so when it is installed without NumPy, which it does not need here.
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    try:
        import torch
        import torch._dynamo  # optimizers import it in their first step
        import torch.optim
        import torch.utils.checkpoint

        import vramdoc.worker.measure  # noqa: F401 - before the fork, not after each
        from vramdoc.worker import dispatch

        dispatch.prepare()
    except ImportError as error:
        return Failure(kind="install", message=f"torch cannot be imported: {error}", hint="vramdoc env")
    if torch.version.cuda is None:
        return Failure(
            kind="install",
            message=f"torch {torch.__version__} is a CPU build",
            hint="install the CUDA build of torch: it needs no GPU here",
        )
    # Checks that ask the driver would start it, and a forked child could then not use the null GPU.
    return None if null or torch.cuda.is_available() else Failure(kind="install", message="torch finds no GPU")


def _serve_in_child(request: Request, channel: _Channel) -> None:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            end_with_parent()
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{os.environ['VRAMDOC_SCRATCH']}/torchinductor_{os.getpid()}"
            channel.send(_serve(request, channel, null=True))
            status = 0
        except Exception as error:  # noqa: BLE001 - the end of a forked process: nothing may run on in it
            channel.send(Message(event="failed", failure=_bug(error)))
            status = 0
        finally:
            sys.stderr.flush()
            sys.stdout.flush()
            # Without the interpreter's end: nothing of the user's runs after the result.
            os._exit(status)
    _, code = os.waitpid(child, 0)
    status = os.waitstatus_to_exitcode(code)
    if status != 0:
        channel.send(Message(event="died", status=status))


def _serve(request: Request, channel: _Channel, *, null: bool) -> Message:
    from vramdoc.nullgpu import apply, counters
    from vramdoc.worker import userland
    from vramdoc.worker.measure import measure
    from vramdoc.worker.verify import verify

    def progress(stage: str, done: int, total: int) -> None:
        channel.send(Message(event="progress", stage=stage, done=done, total=total))

    try:
        if request.null_gpu is not None:
            apply(request.null_gpu)
        with userland.time_limit(request.timeout):
            if request.verify:
                return Message(event="verified", verification=verify(request))
            return Message(event="measured", measurement=measure(request, null=null, progress=progress))
    except TargetError as error:
        kind = "timeout" if isinstance(error, TargetTimeoutError) else "target"
        reads = counters().unknown_reads if null else 0
        return Message(event="failed", failure=_failure(kind, error, trimmed=error.traceback, unknown_reads=reads))
    except InstallError as error:
        return Message(event="failed", failure=_failure("install", error))
    except MeasureError as error:
        return Message(event="failed", failure=_failure("measure", error))
    except userland.OutOfTime:
        return Message(event="failed", failure=Failure(kind="timeout", message="the measurement did not end in time"))


def _failure(kind: str, error: VramdocError, *, trimmed: str = "", unknown_reads: int = 0) -> Failure:
    return Failure(kind=kind, message=error.message, hint=error.hint, traceback=trimmed, unknown_reads=unknown_reads)


def _bug(error: Exception) -> Failure:
    if os.environ.get("VRAMDOC_DEBUG"):
        traceback.print_exception(error)
    return Failure(
        kind="bug",
        message=f"vramdoc failed while it measured: {type(error).__name__}: {error}",
        hint="this is a fault of vramdoc: report it with what VRAMDOC_DEBUG=1 prints",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
