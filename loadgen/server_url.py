"""The address of a server as a user gives it."""

from urllib.parse import urlsplit

from radixgate.errors import ConfigError


def check_url(flag: str, url: str) -> None:
    """Raises ConfigError for what no request could be sent to."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname is not None
        known = known and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise ConfigError(f"{flag} {url}: http://host:port or https://host:port is expected")
