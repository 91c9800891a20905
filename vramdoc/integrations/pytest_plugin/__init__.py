"""The pytest plugin: memory limits on tests that need no GPU.

``@pytest.mark.limit_vram("8GiB", gpu="a100-40")`` runs a test in a process of its own on a null GPU and fails it where
its peak is over the limit. This module is imported by every pytest run in an environment that has vramdoc, so it
imports nothing that takes time; the rest is loaded when a test asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from vramdoc.report.testing import Terms

CHILD = "vramdoc-child"
"""Name of the plugin that runs the tests, in the process on the null GPU: there, this one stands aside."""
RUNNER = "vramdoc-runner"

_MARKERS = (
    "limit_vram(limit, *, gpu, metric): run the test on a null GPU and fail it where its peak is over the limit "
    "(a size such as 8GiB, or a share of the GPU such as 80%; metric: allocated, reserved or device)",
    "limit_growth(limit, *, gpu): run the test on a null GPU and fail it where each step, from the third on, leaves "
    "more memory allocated than the limit (0B: none)",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Each option has a twin in the ini file, which it overrides."""
    group = parser.getgroup("vramdoc", "GPU memory of tests, without a GPU")
    options = (
        ("limit", "SIZE", "the limit of tests on the null GPU that name none: 8GiB, 80%%"),
        ("gpu", "NAME", "the GPU of tests that name none (see `vramdoc gpus`)"),
        ("metric", "NAME", "what a limit is on: allocated (default), reserved or device"),
        ("json", "FILE", "write every figure to FILE"),
    )
    for name, metavar, text in options:
        group.addoption(f"--vram-{name}", metavar=metavar, default=None, help=text)
        parser.addini(f"vram_{name}", text.replace("%%", "%"), default="")
    text = "run every test on the null GPU, not only those that ask for it"
    group.addoption("--vram-all", action="store_true", default=None, help=text)
    parser.addini("vram_all", text, type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Checks the options; raises :class:`pytest.UsageError`."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    if config.pluginmanager.has_plugin(CHILD):
        return
    defaults = {name: setting(config, name) for name in ("limit", "gpu", "metric")}
    if any(defaults.values()):
        from vramdoc.integrations.pytest_plugin.terms import check_defaults

        check_defaults(**defaults)
    path = setting(config, "json")
    if path and not hasattr(config, "workerinput"):  # xdist's workers send their figures to the process that writes
        from vramdoc.integrations.pytest_plugin.figures import FigureFile

        config.pluginmanager.register(FigureFile(config.invocation_params.dir / path), "vramdoc-json")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Finds the tests for the null GPU, checks what they ask for, and gets ready to run them."""
    if config.pluginmanager.has_plugin(CHILD):
        return
    everything = config.getoption("--vram-all") or config.getini("vram_all")
    asking = [item for item in items if everything or _asks(item)]
    if not asking:
        return
    from vramdoc.integrations.pytest_plugin.runner import NullGpuRunner
    from vramdoc.integrations.pytest_plugin.terms import terms_of

    terms: dict[str, Terms | pytest.UsageError] = {}
    for item in asking:
        try:
            terms[item.nodeid] = terms_of(item, lambda name: setting(config, name))
        except pytest.UsageError as error:
            if not hasattr(config, "workerinput"):
                raise
            terms[item.nodeid] = error  # an xdist worker that ends while it collects takes the whole run down
    config.pluginmanager.register(NullGpuRunner(config, terms, {str(item.path) for item in asking}), RUNNER)


def _asks(item: pytest.Item) -> bool:
    marked = item.get_closest_marker("limit_vram") or item.get_closest_marker("limit_growth")
    return marked is not None or "vram" in getattr(item, "fixturenames", ())


def setting(config: pytest.Config, name: str) -> str:
    """The option ``--vram-NAME``, else its ini twin, else ""."""
    said: str | None = config.getoption(f"--vram-{name}")
    return said if said is not None else str(config.getini(f"vram_{name}"))


@pytest.fixture
def vram(request: pytest.FixtureRequest) -> Any:
    """What the test has taken so far on its null GPU; see ``vramdoc.worker.testing.vram.Vram``.

    ``peak_bytes``, ``reserved_bytes``, ``allocated_bytes``, ``categories``, ``modules``, ``lines``, ``phase(name)``,
    ``growth_bytes``, and ``with vram.step():`` around each step of a loop that has no optimizer.
    """
    child: Any = request.config.pluginmanager.get_plugin(CHILD)
    assert child is not None, "a test that uses vram runs on the null GPU"
    return child.vram
