"""Which rank of which world a process is, and the environment that ``torchrun`` would give it."""

from __future__ import annotations

from dataclasses import dataclass

from vramdoc.errors import UsageError

# The watchdog's helpers look for stuck peers; without peers they only delay the end of the process.
QUIET_NCCL = {
    "TORCH_NCCL_ENABLE_MONITORING": "0",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
    "TORCH_NCCL_PROPAGATE_ERROR": "0",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One rank's place. Raises :class:`UsageError` where the numbers cannot be."""

    rank: int  # of 0 .. size - 1
    size: int  # ranks in all
    local_size: int = 1  # ranks on this machine, one device each: the process must see as many devices

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(f"a world of {self.size} ranks", hint="a world has at least one rank")
        if not 0 <= self.rank < self.size:
            raise UsageError(
                f"rank {self.rank} of a world of {self.size}", hint=f"choose a rank from 0 to {self.size - 1}"
            )
        if self.local_size < 1 or self.size % self.local_size:
            raise UsageError(
                f"{self.size} ranks on machines of {self.local_size}",
                hint="the world size must be a multiple of the ranks on one machine",
            )

    @property
    def local_rank(self) -> int:
        return self.rank % self.local_size

    def environment(self) -> dict[str, str]:
        """What ``torchrun`` sets for this rank."""
        node, nodes = self.rank // self.local_size, self.size // self.local_size
        return {
            "RANK": str(self.rank),
            "WORLD_SIZE": str(self.size),
            "LOCAL_RANK": str(self.local_rank),
            "LOCAL_WORLD_SIZE": str(self.local_size),
            "GROUP_RANK": str(node),
            "GROUP_WORLD_SIZE": str(nodes),
            "ROLE_RANK": str(self.rank),
            "ROLE_WORLD_SIZE": str(self.size),
            "ROLE_NAME": "default",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29500",
            "TORCHELASTIC_RUN_ID": "none",
            "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_MAX_RESTARTS": "0",
        }
