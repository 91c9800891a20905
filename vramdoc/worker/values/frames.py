"""Which line of the user's code is running."""

from __future__ import annotations

import sys
import sysconfig
import threading
from functools import lru_cache
from pathlib import Path
from types import FrameType

import torch

import vramdoc

_TORCH = str(Path(torch.__file__).parent) + "/"
_RECURRENT = _TORCH + "nn/modules/rnn.py"
_VRAMDOC = str(Path(vramdoc.__file__).parent) + "/"
_STANDARD_LIBRARY = sysconfig.get_path("stdlib") + "/"


def user_position() -> tuple[str, int]:
    """File and line of the innermost frame of user code, or of the library that it called; ``("", 0)`` if none.

    Backward runs in a thread of its own that has no Python frames below it: the main thread, which waits in
    ``backward()``, then says where.
    """
    position = _search(sys._getframe(1))
    if position is None and threading.current_thread() is not threading.main_thread():
        position = _search(sys._current_frames().get(threading.main_thread().ident or 0))
    return position or ("", 0)


def in_recurrent_layer() -> bool:
    """Whether a call of torch's RNN, LSTM or GRU module is what runs."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_VRAMDOC):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename == _RECURRENT


def _search(frame: FrameType | None) -> tuple[str, int] | None:
    library: tuple[str, int] | None = None
    while frame is not None:
        origin = _origin(frame.f_code.co_filename)
        if origin == "user":
            return frame.f_code.co_filename, frame.f_lineno
        if origin == "library" and library is None:
            library = frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return library


@lru_cache(maxsize=4096)
def _origin(file: str) -> str:
    """``user``, ``library`` (an installed package other than torch) or ``machinery``."""
    if file.startswith(("<", _TORCH, _VRAMDOC)):
        return "machinery"
    if "/site-packages/" in file or "/dist-packages/" in file:
        return "library"
    return "machinery" if file.startswith(_STANDARD_LIBRARY) else "user"
