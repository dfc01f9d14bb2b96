"""A folder for the sockets of one gateway: who may enter it is who may use them."""

import shutil
import tempfile
from pathlib import Path

from radixgate.errors import ConfigError

# What a Unix socket's address holds on Linux, its end included.
_LONGEST_PATH = 108


class PrivateFolder:
    """Readable and searchable by its owner alone. `remove` it at the end."""

    def __init__(self) -> None:
        """Raises ConfigError if none can be made where temporary files belong."""
        try:
            self.path = tempfile.mkdtemp(prefix="radixgate-")
        except OSError as exc:
            raise ConfigError(f"no folder for sockets can be made: {exc}; set TMPDIR") from exc

    def socket(self, name: str) -> str:
        """The path of a socket in it. Raises ConfigError if that is too long for one."""
        path = str(Path(self.path, name))
        if len(path.encode()) >= _LONGEST_PATH:
            raise ConfigError(
                f"{path} is {len(path)} characters, too long for a socket: set TMPDIR to a shorter"
            )
        return path

    def remove(self) -> None:
        """With all that is in it; again is harmless."""
        shutil.rmtree(self.path, ignore_errors=True)
