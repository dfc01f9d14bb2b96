"""The garbage collector, set for a process that serves: little garbage has cycles."""

import gc


def spare_collector(after_objects: int = 10_000) -> None:
    """What is there now stays: it is not looked at again in each collection.

    Cycles among requests are few, and may wait until there are `after_objects` more objects than
    were freed; a running request has about a hundred. The more wait, the longer each pause.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(after_objects, 10, 10)
