"""The `radixgate` command: its words are read, and what went wrong is one line."""

import sys
from collections.abc import Sequence

from radixgate import log
from radixgate.commands import ENTRIES
from radixgate.configs.load import load
from radixgate.errors import ConfigError, RadixgateError

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130  # as shells say it: 128 and SIGINT's number


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Bad settings give one line on stderr and exit code 2."""
    words = list(sys.argv[1:] if argv is None else argv)
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


def _overview() -> str:
    lines = ["radixgate COMMAND [--help] [flags]", ""]
    lines += [f"  {name:<11}{entry.command.about}" for name, entry in ENTRIES.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
