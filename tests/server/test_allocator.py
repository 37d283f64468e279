"""Memory settings of the C library, in a process of their own."""

import platform
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="other C libraries have no such settings"
)

PROGRAM = """
import ctypes, sys, threading
from brimline.daemon.allocator import limit_fragmentation

if sys.argv[1] == "limited":
    limit_fragmentation()
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
library.free(ctypes.c_void_p(library.malloc(ctypes.c_size_t(8 << 20))))
for _ in range(100):
    library.malloc(ctypes.c_size_t(1 << 20))
library.malloc_info(0, ctypes.c_void_p.in_dll(library, "stdout"))
library.fflush(None)
"""


def allocation(option: str) -> str:
    """How the C library describes the memory of four threads, after large blocks."""
    command = [sys.executable, "-c", PROGRAM, option]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def mapped_blocks(description: str) -> int:
    (count,) = re.findall(r'<total type="mmap" count="(\d+)"', description)
    return int(count)


def test_threads_share_one_arena() -> None:
    assert allocation("default").count("<heap nr=") > 1
    assert allocation("limited").count("<heap nr=") == 1


def test_large_blocks_leave_no_gaps_in_the_heap_after_a_larger_one_was_freed() -> None:
    assert mapped_blocks(allocation("default")) < 100
    assert mapped_blocks(allocation("limited")) >= 100
