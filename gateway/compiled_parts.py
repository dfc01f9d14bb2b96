"""Which parts run as compiled C here, which in Python for want of a compiler, and who writes."""

import logging

from radixgate.gateway.attempt import flow
from radixgate.gateway.heads import chunks
from radixgate.gateway.workers import stream_ends
from radixgate.log import fields
from radixgate.policies import cheapest, fewest
from radixgate.proto import chained
from radixgate.radix_mirror import walk

_log = logging.getLogger(__name__)

_PARTS = {
    "block_ids": chained.COMPILED,
    "costs": cheapest.COMPILED,
    "columns": fewest.COMPILED,
    "mirror_walk": walk.COMPILED,
    "chunks": chunks.COMPILED,
    "flows": flow.COMPILED,
    "stream_ends": stream_ends.COMPILED,
}


def tell_compiled_parts(row_writes: str) -> None:
    """One line in the log, as nothing else shows it but the speed.

    `row_writes`: who takes what goes to many clients in one call here, as the data path says it.
    """
    told = {
        said: ",".join(part for part, is_compiled in _PARTS.items() if is_compiled is wanted)
        for said, wanted in (("in_c", True), ("in_python", False))
    }
    _log.info(
        "compiled parts",
        extra=fields(
            **{said: parts or "none" for said, parts in told.items()}, row_writes=row_writes
        ),
    )
