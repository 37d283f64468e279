"""Memory arenas of the C library, in a process of their own."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, sys, threading
from brimline.server.allocator import use_one_arena

if sys.argv[1] == "one":
    use_one_arena()
library, barrier = ctypes.CDLL(None), threading.Barrier(4)
library.malloc.restype = ctypes.c_void_p

def allocate():
    barrier.wait()
    library.malloc(ctypes.c_size_t(1_000))
    barrier.wait()

threads = [threading.Thread(target=allocate) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
library.malloc_info(0, ctypes.c_void_p.in_dll(library, "stdout"))
library.fflush(None)
"""


def count_arenas(option: str) -> int:
    """Count the arenas that four threads use."""
    command = [sys.executable, "-c", PROGRAM, option]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return result.stdout.count("<heap nr=")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no arenas")
def test_threads_share_one_arena() -> None:
    assert count_arenas("many") > 1
    assert count_arenas("one") == 1
