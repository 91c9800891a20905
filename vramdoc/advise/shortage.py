"""What to say where nothing fits: what still fills the GPU, and which or how many GPUs would do. Pure."""

from __future__ import annotations

from vramdoc.advise import ways
from vramdoc.advise.asked import Asked
from vramdoc.advise.candidate import Ledger, Result
from vramdoc.advise.records import Records
from vramdoc.analysis.next_steps import smallest_gpu
from vramdoc.report.advice import Shortage
from vramdoc.report.measurement import Measurement


def shortage(ledger: Ledger, records: Records, smallest: Result, attributed: Measurement, asked: Asked) -> Shortage:
    """``attributed`` is the run of ``smallest`` that says what its bytes are."""
    room = asked.room
    categories = attributed.attributed.categories if attributed.attributed is not None else {}
    able = smallest_gpu(round(smallest.reserved_bytes / (1 - room.margin)), asked.gpu.compute_capability)
    more = ways.enough(
        ledger, smallest.candidate, asked.gpus_per_node, max(2, 2 * smallest.candidate.gpus), room.allowed_bytes
    )
    return Shortage(
        run=records.name(smallest),
        reserved_bytes=smallest.reserved_bytes,
        short_bytes=smallest.reserved_bytes - room.allowed_bytes,
        filled_by=dict(sorted(((n, b) for n, b in categories.items() if b), key=lambda row: -row[1])),
        gpu=able.short_name if able is not None else "",
        gpu_name=able.name if able is not None else "",
        gpus=more.candidate.gpus if more is not None else None,
        gpus_run=records.name(more) if more is not None else "",
    )
