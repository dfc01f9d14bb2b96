from array import array

def chained(
    parent: int, content: bytes | memoryview | array[int], block_bytes: int, /
) -> bytes: ...
