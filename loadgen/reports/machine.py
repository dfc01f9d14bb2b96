"""What a measurement ran on."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from radixgate import __version__

_PACKAGES = ("aiohttp", "uvloop", "msgspec", "numpy", "plotly")


def machine() -> dict[str, object]:
    """Host, versions, and the commit if the package runs from a checkout (null else)."""
    return {
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "radixgate": __version__,
        "commit": _commit(),
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    here = Path(__file__).resolve().parent
    try:
        found = subprocess.run(
            ("git", "rev-parse", "HEAD"), cwd=here, capture_output=True, text=True, timeout=5
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None
