"""What holds for every test."""

from hypothesis import settings

# How long an example takes on a busy machine is no property of the code; pytest's own time-out
# bounds the whole test.
settings.register_profile("radixgate", deadline=None)
settings.load_profile("radixgate")
