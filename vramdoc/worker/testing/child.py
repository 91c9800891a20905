"""The pytest plugin of the process on the null GPU: collects, then runs each ordered test in a fork."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import msgspec
import pytest
import torch

from vramdoc.nullgpu import apply
from vramdoc.report.testing import CoverageOptions, Order, Reply, Setup, Warned
from vramdoc.worker.lifetime import end_with_parent
from vramdoc.worker.testing.vram import Vram

NAME = "vramdoc-child"

# Options of pytest and its plugins that must not hold here: one process, all tests, no files of its own.
_OVERRIDDEN: dict[str, Any] = {
    "dist": "no",
    "tx": [],
    "numprocesses": None,
    "usepdb": False,
    "lf": False,
    "stepwise": False,
    "stepwise_skip": False,
    "maxfail": 0,
    "continue_on_collection_errors": True,
    "collectonly": False,
    "log_file": os.devnull,
}


class Child:
    """Serves the orders that come down one pipe, by replies up another."""

    __name__ = NAME  # pytest registers it under this, so that vramdoc's other plugin knows to stand aside

    def __init__(self, setup: Setup, orders: BinaryIO, replies: int, before_test: Callable[[], None]) -> None:
        self.vram: Vram  # of the test that runs
        self._setup = setup
        self._orders = orders
        self._replies = replies
        self._before_test = before_test
        self._items: dict[str, pytest.Item] = {}
        self._problems: dict[str, str] = {}  # node id of a collector -> why it failed
        self._serving = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> None:
        """Turns the asking process's configuration into that of a process that only runs tests."""
        for name, value in _OVERRIDDEN.items():
            if hasattr(config.option, name):
                setattr(config.option, name, value)
        config.option.basetemp = None
        config.args = list(self._setup.files)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Keeps the terminal to the tests and to the asking process, where tests print directly."""
        if self._setup.live_output:
            config.pluginmanager.unregister(name="terminalreporter")

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Keeps every test, also what an option or a plugin leaves out afterwards: who asks has selected."""
        self._items[item.nodeid] = item

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keeps why a file could not be collected."""
        if report.failed:
            self._problems[report.nodeid] = report.longreprtext

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> NoReturn:
        """Serves orders, in place of running what was collected."""
        factory: Any = getattr(session.config, "_tmp_path_factory", None)
        if factory is not None and self._setup.basetemp:
            # One folder for all forks, in which each takes new numbers: none may clear it for the others.
            factory._basetemp = Path(self._setup.basetemp)
        self._send(Reply(ready=True, exclusive=torch.cuda.is_initialized()))
        for line in self._orders:
            self._serve(msgspec.json.decode(line, type=Order))
        os._exit(0)  # at its ordinary end, a session's plugins would write their reports

    def _serve(self, order: Order) -> None:
        item = self._items.get(order.nodeid)
        if item is None:
            errors = "".join(f"\n{text}" for nodeid, text in self._problems.items() if order.nodeid.startswith(nodeid))
            self._send(Reply(problem=f"{order.nodeid} was not found by the pytest process on the null GPU{errors}"))
            return
        if torch.cuda.is_initialized():
            self._run_and_exit(item, order, forked=False)
        pid = os.fork()
        if pid == 0:
            self._run_and_exit(item, order, forked=True)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status < 0:
            self._send(Reply(problem=f"the test's process died of {signal.Signals(-status).name}"))
        elif status != 0:
            self._send(Reply(problem=f"the test's process ended by itself with status {status}"))
        else:
            self._send(Reply(done=True))

    def _run_and_exit(self, item: pytest.Item, order: Order, *, forked: bool) -> NoReturn:
        status = 1
        try:
            end_with_parent()
            self._before_test()
            if forked:
                apply(order.null_gpu)
            with _coverage(order.coverage), Vram(order, item.config.rootpath) as self.vram:
                self._serving = True
                item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
                self._serving = False
            self._send(Reply(figures=self.vram.figures, done=not forked))
            status = 0
        except BaseException:  # noqa: BLE001 - the end of a forked process: nothing may run on in it
            self._send(Reply(problem=f"a test could not be run: {traceback.format_exc()}"))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measures the call, and fails it like a failed test where it took too much."""
        self.vram.start_call()
        try:
            result = yield
        except torch.cuda.OutOfMemoryError:
            self.vram.end_call(out_of_memory=True)
            raise
        except BaseException:
            self.vram.end_call()
            raise
        self.vram.end_call()
        failure = self.vram.verdict()
        if failure:
            pytest.fail(failure, pytrace=False)
        if self.vram.peak_bytes == 0 and item.get_closest_marker("limit_vram"):
            item.warn(pytest.PytestWarning("limit_vram says nothing: the test took no GPU memory"))
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Sends a phase's report up."""
        if self._serving:
            config = self._items[report.nodeid].config
            data = config.hook.pytest_report_to_serializable(config=config, report=report)
            self._send(Reply(report=data))

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, nodeid: str) -> None:
        """Sends a test's warning up."""
        if self._serving and nodeid:
            category = warning_message.category
            self._send(
                Reply(
                    warned=Warned(
                        category=f"{category.__module__}.{category.__qualname__}",
                        message=str(warning_message.message),
                        file=warning_message.filename,
                        line=warning_message.lineno,
                    )
                )
            )

    def _send(self, reply: Reply) -> None:
        line = memoryview(msgspec.json.encode(reply, enc_hook=str) + b"\n")
        while line:
            line = line[os.write(self._replies, line) :]


@contextmanager
def _coverage(asked: CoverageOptions | None) -> Iterator[None]:
    """Measures coverage as the asking process does, into the file that it names."""
    if asked is None:
        yield
        return
    coverage: Any = importlib.import_module("coverage")
    measured = coverage.Coverage(data_file=asked.data_file, config_file=False, messages=False)
    for name, value in asked.options.items():
        measured.set_option(name, value)
    measured.start()
    try:
        yield
    finally:
        measured.stop()
        measured.save()
