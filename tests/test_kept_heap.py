"""A process that serves does not ask the kernel for the same memory again and again."""

import platform
import subprocess
import sys

import pytest

# As requests do: some big ones at a time, which all end, again and again.
SERVE = """
import resource, sys
from radixgate.kept_heap import keep_heap

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        bodies = [b"x" * 100_000 for _ in range(20)]
        del bodies
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

without = faults()
keep_heap()
faults()
print(without, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the limits are glibc's")
def test_memory_that_is_freed_is_there_when_it_is_wanted_again() -> None:
    done = subprocess.run([sys.executable, "-c", SERVE], capture_output=True, text=True, check=True)
    without, kept = map(int, done.stdout.split())
    assert without > 2_000  # pages, of the 24,000 that are written to
    assert kept < 100
