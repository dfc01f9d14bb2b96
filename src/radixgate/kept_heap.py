"""Freed memory that the process keeps, set for one that serves: the next request wants it again."""

KEPT_BYTES = 8 << 20


def keep_heap() -> None:
    """So much freed memory stays with the process, in place of 128 KB, if the C library is glibc.

    What it gives back comes again page by page, each cleared by the kernel: a request of 100 KB
    met up to ten such faults, a tenth of all it cost.
    """
    # A block that was mapped by itself and is freed raises glibc's own limits, as such blocks seem
    # to come and go: below its size nothing is mapped by itself, and twice as much is kept.
    bytearray(KEPT_BYTES // 2)
