"""What must be read before an order to abort that names whom it means."""

from collections.abc import Iterable

from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.exchange.held_requests import HeldRequests
from radixgate.gateway.workers.roster import Member


async def read_rids(order: AbortOrder, held: HeldRequests, members: Iterable[Member]) -> None:
    """The bodies that nobody has read for their rids yet, in turns of the loop: then the order
    itself is a look at each. What comes meanwhile the order reads."""
    if order.everything:
        return
    await held.read_rids()
    for member in members:
        await member.handle.read_rids()
