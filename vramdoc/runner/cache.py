"""Runs that were made before, on disk: one small file for each, that anybody may delete at any time."""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from vramdoc.errors import MeasureError
from vramdoc.report.measurement import Failure, Measurement, Request

_MOST_FILES = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """Content of a file: exactly one of the two."""

    measurement: Measurement | None = None
    failure: Failure | None = None


class RunCache:
    """Measurements, and measures that did not apply, by request, for one state of the target and its surroundings.

    ``state`` is :func:`vramdoc.runner.fingerprint.fingerprint`'s. A file that is damaged, or that cannot be written,
    is as good as none.
    """

    def __init__(self, folder: Path, state: str) -> None:
        self._folder = folder
        self._state = state

    def get(self, request: Request) -> Measurement | MeasureError | None:
        """What ``request`` gave; None where it has to be run."""
        try:
            entry = msgspec.json.decode(self._file(request).read_bytes(), type=_Entry)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        if entry.failure is not None:
            return MeasureError(entry.failure.message, hint=entry.failure.hint)
        return entry.measurement

    def put(self, request: Request, found: Measurement | MeasureError) -> None:
        """Keeps ``found``; its file is there whole or not at all."""
        if isinstance(found, Measurement):
            entry = _Entry(measurement=found)
        else:
            entry = _Entry(failure=Failure(kind="measure", message=found.message, hint=found.hint))
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder, prefix=".")
            with os.fdopen(handle, "wb") as stream:
                stream.write(msgspec.json.encode(entry))
            Path(name).replace(self._file(request))

    def prune(self) -> None:
        """Removes the oldest files beyond some thousands."""
        with suppress(OSError):
            files = sorted(self._folder.glob("*.json"), key=lambda file: file.stat().st_mtime)
            for file in files[:-_MOST_FILES]:
                file.unlink(missing_ok=True)

    def _file(self, request: Request) -> Path:
        # How long a run may take does not change what it finds.
        asked = msgspec.json.encode(replace(request, timeout=0.0))
        key = hashlib.sha256(self._state.encode() + asked).hexdigest()
        return self._folder / f"{key[:40]}.json"
