"""Becomes another program after asking the kernel to kill it when its parent dies.

    python die_with_parent.py PARENT_PID PROGRAM [ARGUMENT...]

A program of its own, and not a `preexec_fn`, because nothing but exec is safe between fork and exec
in a process with threads. The request survives exec.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    """Never returns: the process runs the program, or has ended."""
    parent, program = int(argv[0]), argv[1:]
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    # The parent may have died before the request was made; then someone else has adopted us.
    if os.getppid() != parent:
        sys.exit(1)
    try:
        os.execvp(program[0], program)
    except OSError as exc:
        sys.exit(f"{program[0]}: {exc.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
