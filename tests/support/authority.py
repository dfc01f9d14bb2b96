"""Certificates made on the fly: an authority, and who has one of it."""

from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as files."""

    cert: str
    key: str


class Authority:
    """Believed by whoever is given `file`."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._ca = trustme.CA()
        self._folder = folder
        self._name = name
        self.file = str(folder / f"{name}.pem")
        self._ca.cert_pem.write_to_path(self.file)

    def pair(self, *names: str) -> Pair:
        """For these hosts, by default this machine."""
        made = self._ca.issue_cert(*(names or ("127.0.0.1", "localhost")))
        stem = f"{self._name}-{'-'.join(names) or 'local'}"
        pair = Pair(str(self._folder / f"{stem}.crt"), str(self._folder / f"{stem}.key"))
        made.private_key_pem.write_to_path(pair.key)
        for number, blob in enumerate(made.cert_chain_pems):
            blob.write_to_path(pair.cert, append=number > 0)
        return pair
