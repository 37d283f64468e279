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
from brimline.server.allocator import limit_fragmentation

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


HEAP = """
import ctypes
from brimline.server.allocator import release_free_pages

def resident_kib():
    status = open("/proc/self/status").read()
    return int(status.partition("VmRSS:")[2].split()[0])

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
blocks = [library.malloc(ctypes.c_size_t(32 << 10)) for _ in range(1_000)]
for block in blocks:
    ctypes.memset(block, 1, 32 << 10)
for block in blocks[:-1]:
    library.free(ctypes.c_void_p(block))
before = resident_kib()
release_free_pages()
print(before - resident_kib())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_free_pages_below_a_used_block_are_returned() -> None:
    done = subprocess.run([sys.executable, "-c", HEAP], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 20_000
