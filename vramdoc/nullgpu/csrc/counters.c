/* What happened in this process, for the one who started it. */
#include "internal.h"

/* Three numbers: small reads of contents nobody knows, launches, allocations refused. */
NULLGPU_API void vramdoc_nullgpu_counters(uint64_t out[3])
{
    out[0] = nullgpu_unknown_reads();
    out[1] = nullgpu_launches();
    out[2] = nullgpu_refused();
}
