"""As many open files as the system lets us have: each stream in flight is one, or two."""

import resource


def raise_limit() -> int:
    """Raise the soft limit to the hard one; the limit that now holds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # a system may allow less than it calls the hard limit
        return soft
    return hard
