"""The `radixgate` command: its words are read, and what went wrong is one line."""

import os
import select
import sys
from collections.abc import Sequence

from radixgate import log
from radixgate.commands import ENTRIES
from radixgate.configs.load import load
from radixgate.errors import ConfigError, RadixgateError

EXIT_USAGE = 2
# As shells say it: 128 and a signal's number, here SIGINT's and SIGPIPE's.
EXIT_INTERRUPTED = 130
EXIT_NO_READER = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Bad settings give one line on stderr and exit code 2.

    Where nobody reads its output any more (`radixgate simulate ... | head -1`) it ends with 141.
    """
    try:
        try:
            return _run(list(sys.argv[1:] if argv is None else argv))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _nobody_reads():
            raise
        return EXIT_NO_READER


def _run(words: Sequence[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0 if words else EXIT_USAGE
    entry = ENTRIES.get(words[0])
    if entry is None:
        print(
            f"radixgate: no command {words[0]!r}; there are {', '.join(ENTRIES)}", file=sys.stderr
        )
        return EXIT_USAGE
    log.set_up()
    try:
        return entry.run(load(entry.command, words[1:]))
    except RadixgateError as error:
        print(f"radixgate {words[0]}: {error}", file=sys.stderr)
        return EXIT_USAGE if isinstance(error, ConfigError) else 1
    except ModuleNotFoundError as missing:
        if not entry.extras or missing.name is None or missing.name.startswith("radixgate"):
            raise  # nothing that an install could bring
        print(
            f"radixgate {words[0]}: {missing.name} is not installed; "
            f"pip install 'radixgate[{entry.extras}]'",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:  # where a command has nothing of its own to say to it
        return EXIT_INTERRUPTED


def _nobody_reads() -> bool:
    """True: it was our output that was broken; what is left of it goes nowhere."""
    output = sys.stdout.fileno()
    state = select.poll()
    state.register(output, select.POLLOUT)
    if not any(events & select.POLLERR for _, events in state.poll(0)):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    return True


def _overview() -> str:
    lines = ["radixgate COMMAND [--help] [flags]", ""]
    lines += [f"  {name:<11}{entry.command.about}" for name, entry in ENTRIES.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
