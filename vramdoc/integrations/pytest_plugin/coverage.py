"""Coverage of what a test's process runs, as part of the coverage that this process measures."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vramdoc.report.testing import CoverageOptions

_OPTIONS = ("run:branch", "run:source", "run:source_pkgs", "run:include", "run:omit", "run:relative_files")


@contextmanager
def shared_coverage() -> Iterator[CoverageOptions | None]:
    """How another process is to measure; what it has saved by the end is added here. None: nothing is measured."""
    module: Any = sys.modules.get("coverage")  # whoever measures has imported it
    current: Any = module.Coverage.current() if module is not None else None
    if current is None:
        yield None
        return
    options = {name: current.get_option(name) for name in _OPTIONS}
    with tempfile.TemporaryDirectory(prefix="vramdoc-") as folder:
        file = Path(folder, "coverage")
        yield CoverageOptions(data_file=str(file), options=options)
        if file.exists():
            data = module.CoverageData(basename=str(file))
            data.read()
            current.get_data().update(data)
            data.close()
