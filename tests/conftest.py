"""Shared fixtures: hypothesis profiles, root without its privileges, the compiled filter."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator

import psutil
import pytest
from hypothesis import settings
from xdist.remote import Producer

from brimline.agents.transcripts.line_filter import CompiledLineFilter, LineFilter, PythonLineFilter
from hypothesis_examples import DEFAULT_EXAMPLES, QUICK_EXAMPLES
from worker_groups import GroupScheduling

LONGEST_FIRST = ("clients", "slow")  # marks of tests

# No deadline: a busy machine would miss it. CI repeats the same examples, people get new ones.
settings.register_profile(
    "brimline", deadline=None, derandomize=bool(os.environ.get("CI")), max_examples=DEFAULT_EXAMPLES
)
settings.load_profile("brimline")
settings.register_profile("quick", settings.get_profile("brimline"), max_examples=QUICK_EXAMPLES)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling | None:
    """Keep groups of tests in one worker, if they are distributed by groups."""
    return GroupScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the longest tests: at the end no worker is left alone with one of them."""
    items.sort(key=lambda item: [not item.get_closest_marker(mark) for mark in LONGEST_FIRST])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Kill the processes that are left of a test that timed out."""
    has_workers = session.config.getoption("numprocesses", None) is not None
    if has_workers and "PYTEST_XDIST_WORKER" not in os.environ:
        return  # each worker does
    for child in psutil.Process().children(recursive=True):
        child.kill()


# A shell ignores these signals for background jobs, and child processes inherit that.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

# CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, with which root may read and write everything.
READS_ALL, SEARCHES_ALL = 1, 2

_VERSION = 0x20080522
_DROP_FROM_BOUNDING_SET = 24


def _may_be_dropped() -> bool:
    if os.geteuid() != 0:
        return False
    if sys.platform != "linux":
        pytest.skip("run the tests as an ordinary user: root may read everything here")
    return True


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The event loop on which asynchronous tests run: without this, on each that is installed."""
    return "asyncio"


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server."""
    from postgres_server import server_url

    with server_url() as url:
        yield url


@pytest.fixture
def without_privileges() -> Iterator[None]:
    """Drop root's right to read and write everything, for this process."""
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
def drop_privileges() -> Callable[[], None] | None:
    """A `preexec_fn` that drops the same right for a new process; None if it is not root."""
    if not _may_be_dropped():
        return None
    libc = ctypes.CDLL(None)

    def drop() -> None:
        for capability in (READS_ALL, SEARCHES_ALL):
            libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)

    return drop


@pytest.fixture(scope="session")
def compiled() -> type[LineFilter]:
    """The compiled line filter; if it is missing, tests are skipped, or fail under CI=true."""
    if CompiledLineFilter.library is None:
        missing = "the compiled line filter is missing: run `make setup` with a C compiler"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return CompiledLineFilter


@pytest.fixture(scope="session", params=["python", "compiled"])
def picker(request: pytest.FixtureRequest) -> type[LineFilter]:
    """Each implementation of the line filter."""
    return PythonLineFilter if request.param == "python" else request.getfixturevalue("compiled")
