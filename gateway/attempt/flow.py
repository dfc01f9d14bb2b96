"""A step's single tokens on their way to their clients, all of them in one pass.

Hundreds of streams take turns, so that what one event needs has left the processor's caches when
the next one comes: each object on the way is another miss, and so is each function where few
streams run. So the pass is compiled, where there is a compiler. With what hands it over it took a
quarter of all that an event costs in the interpreter, the kernel's part included.
"""

from radixgate.gateway.attempt.flow_in_python import Columns, Token

try:
    from radixgate.gateway.attempt.flow_compiled import Flow, take_step
except ImportError:  # it was installed without a compiler
    from radixgate.gateway.attempt.flow_in_python import Flow, take_step  # type: ignore[assignment]

    COMPILED = False
else:
    COMPILED = True

__all__ = ["COMPILED", "NOTED_TOKENS", "Columns", "Flow", "Flows", "take_step"]

# Tokens that are told of together when credit for them is to go back.
NOTED_TOKENS = 16


class Flows:
    """What flows of one worker, by handle. All of it is of one gateway: one clock and one loop."""

    def __init__(self) -> None:
        self._flows: dict[int, Flow] = {}
        self._stepped_at = 0.0

    def begin(self, handle: int, flow: Flow) -> None:
        self._flows[handle] = flow

    def end(self, handle: int) -> None:
        """Whether it flows or not."""
        self._flows.pop(handle, None)

    def clear(self) -> None:
        self._flows.clear()

    def take(self, columns: Columns) -> tuple[list[Token], list[int]]:
        """Send a step's single tokens, all at one time.

        Returns those of handles that do not flow, and the handles that have NOTED_TOKENS or more
        untaken. O(tokens). Raises what an id or a text that is none does, and some ids may be noted
        then whose texts were not sent; protobuf gives none such.
        """
        flows = self._flows
        if not flows:
            return list(zip(*columns, strict=True)), []
        lane = next(iter(flows.values())).lane
        now, stepped_at = lane.now(), self._stepped_at
        row, rest, owing, late, together = take_step(flows, columns, now, stepped_at, NOTED_TOKENS)
        for other, sent_at in late:
            other.metrics.itl.observe(now - sent_at)
        if together:
            lane.metrics.itl.observe(now - stepped_at, together)
        self._stepped_at = now
        lane.turn.put_row(row)
        return rest, owing
