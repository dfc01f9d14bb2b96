"""The garbage collector kept out of a measurement."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_collector() -> Iterator[None]:
    """What is alive now (the schedule above all) is not walked again by each collection."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
