def plain_finish(stream: bytes, /) -> bytes | None:
    """As `stream_ends.plain_finish_in_python`."""

def data_lines(stream: bytes, /) -> int:
    """As `stream_ends.data_lines_in_python`."""
