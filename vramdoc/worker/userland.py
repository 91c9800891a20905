"""Calls into the user's code, and the one place where whatever it raises is caught."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn, ParamSpec, TypeVar

from vramdoc.errors import TargetError, TargetTimeoutError, VramdocError

P = ParamSpec("P")
R = TypeVar("R")

_OURS = str(Path(__file__).resolve().parent.parent)


class OutOfTime(BaseException):
    """Raised inside user code when its time is over; no ``except Exception`` of theirs swallows it."""


def call(what: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """``function(*args, **kwargs)``; anything but memory running out becomes a :class:`TargetError`.

    ``what`` names the step in the message: ``build_model()``.
    """
    import torch

    try:
        return function(*args, **kwargs)
    except (torch.cuda.OutOfMemoryError, VramdocError):
        raise
    except OutOfTime as error:
        raise TargetTimeoutError(
            f"{what} did not end in time", hint="raise --timeout", traceback=trimmed(error)
        ) from None
    except SystemExit as error:
        raise TargetError(
            f"{what} called sys.exit({'' if error.code is None else repr(error.code)})",
            hint='put what a script runs below `if __name__ == "__main__":`',
            traceback=trimmed(error),
        ) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - user code may raise anything
        raise TargetError(f"{what} failed: {_headline(error)}", hint=_hint(error), traceback=trimmed(error)) from None


def trimmed(error: BaseException) -> str:
    """The traceback as Python prints it, without our own frames and without torch's machinery that calls modules."""
    formatted = traceback.TracebackException.from_exception(error)
    link: traceback.TracebackException | None = formatted
    while link is not None:
        frames = [frame for frame in link.stack if not _is_machinery(frame.filename)]
        link.stack = traceback.StackSummary.from_list(frames)
        link = link.__cause__ or link.__context__
    lines = list(formatted.format())
    if isinstance(error, OutOfTime):
        del lines[-1]  # the exception is ours: where it struck is what counts
    return "".join(lines).rstrip()


def _is_machinery(filename: str) -> bool:
    return filename.startswith((_OURS, "<frozen importlib")) or filename.endswith("/torch/nn/modules/module.py")


def _headline(error: BaseException) -> str:
    text = str(error).strip().split("\n", 1)[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _hint(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"install {error.name.partition('.')[0]} in the environment that vramdoc runs in"
    if isinstance(error, ImportError) and "ninja" in str(error):
        return "install ninja"
    return ""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises :class:`OutOfTime` in the main thread after ``seconds``."""

    def expire(_signal: int, _frame: FrameType | None) -> NoReturn:
        raise OutOfTime

    previous = signal.signal(signal.SIGALRM, expire)
    # Again every second: code that swallows BaseException once must not run on for ever.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
