"""One HTTP exchange as it was seen: bytes with stamps, read for their meaning only afterwards."""

from dataclasses import dataclass, field

# The class of a failure: an answer that has no end, whether it was its connection that broke or
# the one behind it.
CUT_OFF = "cut off"


@dataclass(slots=True)
class Exchange:
    """Filled in by the client while the answer arrives. Times are the clock's seconds."""

    t_dispatch_s: float
    t_end_s: float  # the end of the answer, or when it failed
    status: int | None = None  # None: no head came
    content_type: str = ""  # without parameters; empty: none was given
    worker_id: str | None = None
    t_first_byte_s: float | None = None
    pieces: list[tuple[float, bytes]] = field(default_factory=list)
    broken: str | None = None  # the class of a failure below HTTP; None: there was none
    detail: str = ""
