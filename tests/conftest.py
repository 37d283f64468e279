"""What all tests share: hypothesis without a stopwatch, which a busy machine would trip."""

from hypothesis import settings

settings.register_profile("brimline", deadline=None)
settings.load_profile("brimline")
