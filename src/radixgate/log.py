"""One line a record, `key=value` after the message; prompts and secrets are never passed in."""

import logging
import sys

# What a worker says of itself stands in fields, too: it must not begin a line of its own, nor give
# orders to a terminal.
_NOT_IN_A_LINE = {
    code: chr(code).encode("unicode_escape").decode()
    for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
}


class LineFormatter(logging.Formatter):
    """`2026-01-31T12:00:00Z INFO radixgate.gateway worker down worker=w1 failures=3`."""

    default_msec_format = "%s.%03d"

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        fields = getattr(record, "fields", None)
        if not fields:
            return line
        return f"{line} " + " ".join(
            f"{key}={str(value).translate(_NOT_IN_A_LINE)}" for key, value in fields.items()
        )


def set_up(level: str = "info") -> None:
    """Send every record of radixgate to stderr; call once, from a command's entry point."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger("radixgate")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False


def fields(**values: object) -> dict[str, dict[str, object]]:
    """`logger.info("worker down", extra=fields(worker="w1"))`."""
    return {"fields": values}
