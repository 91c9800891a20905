"""One worker process and the conversation with it.

Requests go down one pipe and messages come up another, one JSON line each, so that whatever user code prints cannot
get between them. The worker leads a session of its own: Ctrl-C reaches only the parent, which then ends them all.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self, TextIO

import msgspec

from vramdoc.errors import InstallError, MeasureError, TargetError, TargetTimeoutError, VramdocError, WorkerError
from vramdoc.report.measurement import Failure, Measurement, Message, Request, Verification
from vramdoc.runner.progress import Listener, Progress

_GRACE_SECONDS = 5.0
"""How much longer than its own time limit a worker may take before it is killed."""
_ERRORS = {"target": TargetError, "timeout": TargetTimeoutError}


class Worker:
    """A worker process as a context manager; ``measure`` runs one request in it.

    ``environment`` decides what it measures on: that of a null GPU makes it a zygote, which serves many requests.
    ``quiet`` drops what user code prints, and warnings of libraries: hundreds of runs would all say the same.
    """

    def __init__(self, environment: Mapping[str, str], *, null: bool, listener: Listener, quiet: bool = False) -> None:
        self._listener = listener
        requests, self._requests = os.pipe()
        self._messages, messages = os.pipe()
        self._buffer = b""
        # Compiled code must not depend on what earlier runs left in a cache, or the same commit gives other bytes.
        self._scratch = TemporaryDirectory(prefix="vramdoc-", ignore_cleanup_errors=True)
        self.broken = False  # it is gone or does not answer: no further request will be served
        # -P: a file of the user's that is called like a module of the standard library must not take its place.
        command = [sys.executable, "-P", "-m", "vramdoc.worker", str(requests), str(messages)]
        self._process = subprocess.Popen(
            command + (["--null"] if null else []),
            env={**environment, "VRAMDOC_SCRATCH": self._scratch.name},
            pass_fds=(requests, messages),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if quiet else sys.stderr.fileno() if _has_descriptor(sys.stderr) else None,
            stderr=subprocess.DEVNULL if quiet else None,
            start_new_session=True,
        )
        os.close(requests)
        os.close(messages)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the worker and everything it started."""
        self.kill()
        for descriptor in (self._requests, self._messages):
            os.close(descriptor)
        self._scratch.cleanup()

    def kill(self) -> None:
        """Ends the processes; a thread that waits in ``measure`` then gets an error."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def measure(self, request: Request) -> Measurement:
        """Runs ``request``. Raises what became of it where it gave no measurement."""
        measurement = self._ask(request).measurement
        assert measurement is not None, "that is what was asked for"
        return measurement

    def verify(self, request: Request) -> Verification:
        """Runs ``request``, which asks to verify its measures. Raises as ``measure`` does."""
        verification = self._ask(request).verification
        assert verification is not None, "that is what was asked for"
        return verification

    def _ask(self, request: Request) -> Message:
        # A worker that is gone says why in its messages, or by its status.
        with suppress(BrokenPipeError):
            os.write(self._requests, msgspec.json.encode(request) + b"\n")
        # Starting takes seconds and is not the user's time.
        deadline: float | None = None
        while True:
            message = self._receive(deadline, request)
            if message.event == "ready" or deadline is None:
                deadline = time.monotonic() + request.timeout + _GRACE_SECONDS
            if message.event == "progress":
                self._listener(Progress(stage=message.stage, done=message.done, total=message.total))
            elif message.event == "died":
                raise _death(message.status)
            elif message.failure is not None:
                raise _error(message.failure)
            elif message.measurement is not None or message.verification is not None:
                return message

    def _receive(self, deadline: float | None, request: Request) -> Message:
        while b"\n" not in self._buffer:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                self.broken = True
                raise TargetTimeoutError(
                    f"{os.path.basename(request.target)} did not end within {request.timeout:g} s",  # noqa: PTH119
                    hint="raise --timeout, or look for an endless loop",
                )
            if not select.select([self._messages], [], [], left)[0]:
                continue
            chunk = os.read(self._messages, 1 << 16)
            if not chunk:
                self.broken = True
                raise _death(self._process.wait())
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            return msgspec.json.decode(line, type=Message)
        except msgspec.DecodeError as error:
            self.broken = True
            raise WorkerError(f"the worker answered nonsense: {error}", hint="report this as a bug") from None


def _has_descriptor(stream: TextIO) -> bool:
    try:
        stream.fileno()
    except (OSError, ValueError):
        return False
    return True


def _error(failure: Failure) -> VramdocError:
    if failure.kind in _ERRORS:
        return _ERRORS[failure.kind](
            failure.message,
            hint=failure.hint,
            traceback=failure.traceback,
            unknown_reads=failure.unknown_reads,
        )
    kind = {"install": InstallError, "measure": MeasureError}.get(failure.kind, WorkerError)
    return kind(failure.message, hint=failure.hint)


def _death(status: int) -> VramdocError:
    """The error for a process that ended without a result; ``status`` negative for a signal."""
    if status == -signal.SIGKILL:
        return WorkerError("the measuring process was killed", hint="the machine may have run out of memory: see dmesg")
    if status < 0:
        return TargetError(
            f"the measuring process died of {signal.Signals(-status).name}",
            hint="native code that the target uses may have crashed: run it under `vramdoc exec` to see",
        )
    return TargetError(
        f"the measuring process ended by itself with status {status}",
        hint="the target or a library it uses called os._exit or abort",
    )
