"""What `radixgate batch` can be told."""

from dataclasses import dataclass
from pathlib import Path

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError
from radixgate.loadgen.server_url import check_url


@dataclass(frozen=True, slots=True)
class BatchConfig:
    """An OpenAI batch file, where its answers go, and how hard the fleet is pressed.

    Started again after any interruption, it goes on where it was: lines that have an answer in
    the output are left alone.
    """

    input: str = knob(help="file of JSON lines with custom_id, method, url and body")
    output: str | None = knob(None, help="answers are appended there; none: INPUT.out.jsonl")
    base_url: str = knob("http://127.0.0.1:8000", help="gateway or server")
    header: tuple[str, ...] = knob((), help="further request headers, each Name=Value")
    max_concurrency: int | None = knob(
        None, help="requests in flight; none: as many as the fleet can use, found while running"
    )
    highest_concurrency: int = knob(512, help="the search for it ends there")
    window_s: float = knob(4.0, help="how long each step of the search lasts at least", unit="s")
    deadline_s: float | None = knob(
        None, help="when the work should be done, from the start; only shown; none: none", unit="s"
    )
    attempts: int = knob(
        5, help="tries of a line whose answer was 429, 5xx or broken off; then its error is written"
    )
    request_timeout_s: float = knob(3600.0, help="whole time of a try", unit="s")
    give_up_s: float = knob(
        120.0,
        help="the run ends, to be started again, if nobody can be reached for so long",
        unit="s",
    )
    disable_tqdm: bool = knob(False, help="no progress")

    def __post_init__(self) -> None:
        for name in ("max_concurrency", "highest_concurrency", "attempts"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"--{name.replace('_', '-')} must be at least 1, not {value}")
        for name in ("window_s", "deadline_s", "request_timeout_s", "give_up_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"--{name.replace('_', '-')} must be over 0, not {value:g}")
        for place, item in enumerate(self.header, 1):
            if item.find("=") < 1:  # not printed: it may be a key
                raise ConfigError(f"--header must be Name=Value; number {place} is not")
        check_url("--base-url", self.base_url)
        if self.output_path == self.input_path:
            raise ConfigError(f"--output {self.output} is the input")

    @property
    def input_path(self) -> Path:
        return Path(self.input)

    @property
    def output_path(self) -> Path:
        """Beside the input unless told otherwise."""
        if self.output is not None:
            return Path(self.output)
        return self.input_path.with_name(self.input_path.stem + ".out.jsonl")

    @property
    def url(self) -> str:
        """Without a slash at the end."""
        return self.base_url.rstrip("/")
