"""``python -m vramdoc.worker.testing ORDERS REPLIES``: a pytest process on the null GPU that forks for every test.

``ORDERS`` and ``REPLIES`` are inherited file descriptors that carry JSON lines (``vramdoc.report.testing``). The
process imports torch, collects the tests as the asking process did, and never touches CUDA itself.
"""

from __future__ import annotations

import os
import sys

import msgspec

from vramdoc.report.testing import Reply, Setup


def main(arguments: list[str]) -> int:
    """Serves orders until their pipe closes."""
    orders = os.fdopen(int(arguments[0]), "rb")
    replies = int(arguments[1])
    setup = msgspec.json.decode(orders.readline(), type=Setup)
    # Until here it said where we come from.
    os.environ["PYTHONPATH"] = setup.python_path
    sys.path[:] = setup.path
    try:
        import torch
    except ImportError as error:
        os.write(replies, msgspec.json.encode(Reply(problem=f"torch cannot be imported: {error}")) + b"\n")
        return 1
    import pytest

    from vramdoc.worker.lifetime import end_with_parent
    from vramdoc.worker.testing.child import Child
    from vramdoc.worker.testing.forks import keep_forkable

    end_with_parent()
    child = Child(setup, orders, replies, keep_forkable(torch))
    return pytest.main(list(setup.arguments), plugins=[child])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
