"""The process on the null GPU that runs the tests: started once for a pytest process, forks for every test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from vramdoc.errors import WorkerError
from vramdoc.report.testing import Order, Reply, Setup

_ROOT = Path(__file__).resolve().parents[3]
_TAIL = 4000
"""How many characters of its output are shown where the process fails."""


class Zygote:
    """A running process; :meth:`run` has it run one test. :meth:`close` ends it and what it started.

    Where ``exclusive``, it serves a single order, on the GPU of its environment.
    """

    def __init__(self, setup: Setup, environment: Mapping[str, str]) -> None:
        orders, self._orders = os.pipe()
        replies_fd, replies = os.pipe()
        self._replies = os.fdopen(replies_fd, "rb")
        self._output_before = 0
        self._output = tempfile.TemporaryFile("w+b")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", "vramdoc.worker.testing", str(orders), str(replies)],
            env={
                "TORCH_CPP_LOG_LEVEL": "ERROR",  # torch logs each refused allocation
                **environment,
                "PYTHONPATH": os.pathsep.join(filter(None, [str(_ROOT), environment.get("PYTHONPATH")])),
            },
            pass_fds=(orders, replies),
            stdin=subprocess.DEVNULL,
            stdout=None if setup.live_output else self._output,
            stderr=self._output,
            start_new_session=True,
        )
        os.close(orders)
        os.close(replies)
        self._send(setup)
        try:
            self.exclusive = next(reply.exclusive for reply in self._receive() if reply.ready)
        except WorkerError:
            self.close()
            raise

    def run(self, order: Order) -> Iterator[Reply]:
        """Has the test run; its replies. Raises :class:`WorkerError`."""
        self._output_before = os.fstat(self._output.fileno()).st_size
        self._send(order)
        for reply in self._receive():
            if reply.problem:
                raise WorkerError(reply.problem + self._tail())
            yield reply
            if reply.done:
                return

    def close(self) -> None:
        """Ends the process at once: none of its plugins may write the reports that are this process's to write."""
        os.close(self._orders)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._replies.close()
        self._output.close()

    def _send(self, message: Setup | Order) -> None:
        line = memoryview(msgspec.json.encode(message, enc_hook=str) + b"\n")
        with suppress(BrokenPipeError):  # a process that is gone says why below
            while line:
                line = line[os.write(self._orders, line) :]

    def _receive(self) -> Iterator[Reply]:
        for line in self._replies:
            yield msgspec.json.decode(line, type=Reply)
        status = self._process.wait()
        raise WorkerError(f"the pytest process on the null GPU ended with status {status}{self._tail()}")

    def _tail(self) -> str:
        """What the process has printed since the order: a test's own captured output is lost with it."""
        file = self._output.fileno()
        # Read without a seek, which would move the place at which the process writes.
        printed = os.pread(file, os.fstat(file).st_size, self._output_before)
        text = printed.decode(errors="replace").strip()
        return f"; its output:\n{text[-_TAIL:]}" if text else ""
