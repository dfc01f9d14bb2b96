"""What of each prompt earlier prompts of the schedule hold already."""

from collections.abc import Sequence
from dataclasses import replace

from radixgate.analysis.cache_bound import reusable_shares
from radixgate.analysis.records import RequestRecord
from radixgate.loadgen.schedule import Schedule

# Beyond this the prefix tree would be larger than the machines that play such schedules.
MOST_BYTES = 2 * 2**30


def with_reusable(records: Sequence[RequestRecord], schedule: Schedule) -> list[RequestRecord]:
    """The records with their reusable shares; as they were if the prompts are over 2 GiB.

    The order of prompts decides which of them finds what another brought, never how much is found
    in all.
    """
    in_order = sorted(schedule, key=lambda one: (one.step, one.t_intended_s, one.turn, one.index))
    units = [request.prompt.units() for request in in_order]
    if sum(len(text) for text, _ in units) > MOST_BYTES:
        return list(records)
    share_of: dict[int, float] = {}
    for unit in {unit for _, unit in units}:
        alike = [(r, text) for r, (text, u) in zip(in_order, units, strict=True) if u == unit]
        shares = reusable_shares([text for _, text in alike], unit)
        share_of.update(
            (request.index, share) for (request, _), share in zip(alike, shares, strict=True)
        )
    return [replace(record, reusable_share=share_of.get(record.index)) for record in records]
