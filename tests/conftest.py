"""What all tests share: hypothesis without a stopwatch, root without its privilege, our C."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

from brimline.transcripts.line_filter import CompiledLineFilter, LineFilter, PythonLineFilter
from trying import QUICK, USUAL

# A busy machine would trip a stopwatch. CI tries the same examples each time, people try new ones.
settings.register_profile(
    "brimline", deadline=None, derandomize=bool(os.environ.get("CI")), max_examples=USUAL
)
settings.load_profile("brimline")
settings.register_profile("quick", settings.get_profile("brimline"), max_examples=QUICK)

# A shell that runs us in the background ignores these for us, and a child inherits what is ignored.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

READS_ALL, SEARCHES_ALL = 1, 2
"""Linux' numbers of the two capabilities by which root may read and write everything."""

_VERSION = 0x20080522
_DROP_FROM_BOUNDING_SET = 24


def _may_be_dropped() -> bool:
    if os.geteuid() != 0:
        return False
    if sys.platform != "linux":
        pytest.skip("run the tests as an ordinary user: root may read everything here")
    return True


@pytest.fixture
def ordinary() -> Iterator[None]:
    """This process may read and write only what its owner may, also where it is root's."""
    if not _may_be_dropped():
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_VERSION, 0)
    before = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, before) == 0
    without = (ctypes.c_uint32 * 6)(*before)
    without[0] &= ~(1 << READS_ALL | 1 << SEARCHES_ALL)
    assert libc.capset(header, without) == 0
    yield
    assert libc.capset(header, before) == 0


@pytest.fixture
def made_ordinary() -> Callable[[], None] | None:
    """What a new process calls before its program starts, to be an ordinary user's."""
    if not _may_be_dropped():
        return None
    libc = ctypes.CDLL(None)

    def drop() -> None:
        for capability in (READS_ALL, SEARCHES_ALL):
            libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)

    return drop


@pytest.fixture(scope="session")
def compiled() -> type[LineFilter]:
    """The compiled picker; where there is none, a test is skipped, or fails under CI=true."""
    if CompiledLineFilter.library is None:
        missing = "the compiled picker is not there: `make setup` with a C compiler makes it"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return CompiledLineFilter


@pytest.fixture(scope="session", params=["python", "compiled"])
def picker(request: pytest.FixtureRequest) -> type[LineFilter]:
    """Each implementation of the line filter."""
    return PythonLineFilter if request.param == "python" else request.getfixturevalue("compiled")
