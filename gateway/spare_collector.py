"""The garbage collector, set for a process that serves: little garbage has cycles."""

import gc

# A running request has about a hundred.
_COLLECT_AFTER_OBJECTS = 10_000


def spare_collector() -> None:
    """What is there at the start stays: it is not looked at again in each collection.

    Cycles among requests are few, and may wait for more company.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER_OBJECTS, 10, 10)
