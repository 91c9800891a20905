"""Runs of several ranks on null GPUs: one process as any rank of any world, or several real processes.

::

    install(World(rank=511, size=512))   # this process is the last of 512 ranks; no peer is needed
    install_processes()                  # this process was started by torchrun, its peers exist

Both come before the user's code. The memory of a rank is the same to the byte either way.
"""

from vramdoc.worker.ranks.one_rank import acting_as, install
from vramdoc.worker.ranks.processes import among_processes, install_processes
from vramdoc.worker.ranks.world import World

__all__ = ["World", "acting_as", "among_processes", "install", "install_processes"]
