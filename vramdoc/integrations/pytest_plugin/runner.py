"""Runs the tests of one pytest process that belong on a null GPU, in place of pytest's own protocol."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from vramdoc import hardware, nullgpu
from vramdoc.errors import VramdocError
from vramdoc.integrations.pytest_plugin.coverage import shared_coverage
from vramdoc.integrations.pytest_plugin.figures import ATTRIBUTE
from vramdoc.integrations.pytest_plugin.zygote import Zygote
from vramdoc.report.testing import Figures, Order, Setup, Terms, Warned
from vramdoc.runner.devices import device_specs

_STOP = (KeyboardInterrupt, pytest.exit.Exception)


class NullGpuRunner:
    """Hooks for the tests in ``terms``, which maps node ids; ``files`` are where they lie.

    In place of terms there may be what is wrong with them.
    """

    def __init__(
        self, config: pytest.Config, terms: Mapping[str, Terms | pytest.UsageError], files: Iterable[str]
    ) -> None:
        self._config = config
        self._terms = terms
        self._files = tuple(sorted(files))
        self._zygote: Zygote | None = None
        self._broken: VramdocError | None = None  # why no zygote could be started

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> object:
        """Runs ``item`` on its null GPU and hands on the reports; None where it has no business there."""
        terms = self._terms.get(item.nodeid)
        if terms is None:
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports: list[pytest.TestReport] = []
        run = pytest.CallInfo.from_call(lambda: reports.extend(self._try(item, terms)), "setup", reraise=_STOP)
        if run.excinfo is not None:
            # Not the test's failure: whatever stopped us may have left its process in the middle of it.
            self._close()
            reports = [pytest.TestReport.from_item_and_call(item, run)]
        reports += _tear_down(item, nextitem)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_sessionfinish(self) -> None:
        """Ends the process."""
        self._close()

    def _try(self, item: pytest.Item, terms: Terms | pytest.UsageError) -> list[pytest.TestReport]:
        """:meth:`_run`, with an error of ours as a failure that says it in words, without our own frames."""
        if isinstance(terms, pytest.UsageError):
            pytest.fail(str(terms), pytrace=False)
        try:
            return self._run(item, terms)
        except VramdocError as error:
            problem = f"{error.message}\n{error.hint}".strip()
        pytest.fail(problem, pytrace=False)

    def _run(self, item: pytest.Item, terms: Terms) -> list[pytest.TestReport]:
        """The test's reports. What is not known after a plain run is found out by another.

        A test that reads device values that nobody knows runs again with host shadows, as a profile does; one that is
        over a limit runs again with a recording that says of what.
        """
        gpu = device_specs(hardware.find(terms.gpu))
        environment = nullgpu.environment(gpu)  # checks what is installed
        build = nullgpu.torch_build()
        assert build is not None, "the environment has checked it"
        order = Order(
            nodeid=item.nodeid,
            null_gpu=nullgpu.configuration(gpu, build, limited=True),
            terms=terms,
            attributed="vram" in getattr(item, "fixturenames", ()),
        )
        with shared_coverage() as coverage:
            order = replace(order, coverage=coverage)
            outcome = self._ask(order, environment)
            if outcome.figures and outcome.figures.unknown_reads:
                order = replace(order, shadowed=True)
                outcome = self._ask(order, environment)
            if outcome.figures and outcome.figures.over and not order.attributed:
                outcome.explain(self._ask(replace(order, attributed=True), environment).figures)
        return outcome.finish(terms)

    def _ask(self, order: Order, environment: Mapping[str, str]) -> _Outcome:
        zygote = self._start(environment)
        outcome = _Outcome(self._config, zygote, order)
        if zygote.exclusive:
            self._close()
        return outcome

    def _start(self, environment: Mapping[str, str]) -> Zygote:
        """The process that runs the tests, started by the first of them; it serves every kind of GPU."""
        if self._zygote is not None:
            return self._zygote
        if self._broken is not None:
            raise self._broken
        factory: Any = getattr(self._config, "_tmp_path_factory", None)
        basetemp = str(factory.mktemp("vramdoc")) if factory is not None else None
        # This process measures coverage, and has the tests' share sent to it.
        without_coverage = ["--no-cov"] if self._config.pluginmanager.has_plugin("pytest_cov") else []
        setup = Setup(
            arguments=(*map(str, self._config.invocation_params.args), *without_coverage),
            files=self._files,
            path=tuple(sys.path),
            python_path=environment.get("PYTHONPATH", ""),
            basetemp=basetemp,
            live_output=self._config.getoption("capture", "fd") == "no",
        )
        try:
            self._zygote = Zygote(setup, environment)
        except VramdocError as error:
            self._broken = error  # the next test would wait as long for the same
            raise
        return self._zygote

    def _close(self) -> None:
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None


class _Outcome:
    """What came of one run of one test."""

    def __init__(self, config: pytest.Config, zygote: Zygote, order: Order) -> None:
        self._reports: list[pytest.TestReport] = []
        self._warned: list[Warned] = []
        self.figures: Figures | None = None
        for reply in zygote.run(order):
            if reply.report is not None:
                # JSON knows no tuples; of lists in a report, these two are none.
                data = {
                    name: tuple(value) if name in ("location", "longrepr") and isinstance(value, list) else value
                    for name, value in reply.report.items()
                }
                self._reports.append(config.hook.pytest_report_from_serializable(config=config, data=data))
            if reply.warned is not None:
                self._warned.append(reply.warned)
            if reply.figures is not None:
                self.figures = reply.figures

    def explain(self, figures: Figures | None) -> None:
        """Adds what a recorded run of the same test found out; the figures stay those of the plain one."""
        if self.figures and figures:
            self.figures = replace(self.figures, categories=figures.categories, explanation=figures.explanation)

    def finish(self, terms: Terms) -> list[pytest.TestReport]:
        """The reports, with the figures on that of the call; the test's warnings become this process's."""
        for warned in self._warned:
            # This process's own filters were the test's: an "error" has failed it already.
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.warn_explicit(warned.message, _category(warned.category), warned.file, warned.line)
        for report in self._reports:
            if self.figures is None or report.when == "setup":
                continue
            # For whoever reads properties; a junit file takes those of the last phase.
            report.user_properties.append(("vram_peak_allocated_bytes", self.figures.peak_allocated_bytes))
            report.user_properties.append(("vram_peak_reserved_bytes", self.figures.peak_reserved_bytes))
            if report.when == "call":
                figures = msgspec.to_builtins(terms) | msgspec.to_builtins(self.figures)
                setattr(report, ATTRIBUTE, {name: figures[name] for name in figures if name not in _INTERNAL})
                if self.figures.over and self.figures.explanation:
                    report.sections.insert(0, ("GPU memory", self.figures.explanation))
        return self._reports


_INTERNAL = ("over", "unknown_reads", "explanation")


def _category(name: str) -> type[Warning]:
    module, _, qualified = name.rpartition(".")
    found = getattr(sys.modules.get(module), qualified, None)
    return found if isinstance(found, type) and issubclass(found, Warning) else UserWarning


def _tear_down(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """Ends what earlier tests of this process share with ``item``, but not with ``nextitem``: a module's fixtures.

    The test itself was never set up here, so pytest's own teardown of it is not to run. Reports a failure, if any.
    """
    setup_state: Any = item.session._setupstate
    tear_down: Callable[[], None] = lambda: setup_state.teardown_exact(nextitem)  # noqa: E731 - typed
    call = pytest.CallInfo.from_call(tear_down, "teardown", reraise=_STOP)
    return [pytest.TestReport.from_item_and_call(item, call)] if call.excinfo is not None else []
