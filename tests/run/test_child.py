"""A child process: its output and exit."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from brimline.errors import CommandFailed
from brimline.run.child import ChildProcess


def ended(child: ChildProcess) -> int:
    """Its exit code, once it has ended."""
    while (code := child.poll()) is None:
        time.sleep(0.005)
    child.close()
    return code


def child(script: str) -> ChildProcess:
    return ChildProcess(["sh", "-c", script], os.environ)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
    ],
)
def test_exit_code_is_reported_as_by_a_shell(script: str, code: int) -> None:
    process = child(script)
    assert ended(process) == code
    assert process.poll() == code


def test_output_is_readable() -> None:
    process = child("printf hello")
    assert os.read(process.out, 100) == b"hello"
    assert os.read(process.out, 100) == b""
    ended(process)


def test_signal_after_end_is_not_sent() -> None:
    """Its pid may belong to another process."""
    process = child("exit 0")
    ended(process)
    process.send(signal.SIGKILL)


def test_child_starts_with_default_signals() -> None:
    """None is blocked, and those that Python ignores are reset."""
    script = "import signal;print(signal.pthread_sigmask(0,[]),signal.getsignal(signal.SIGPIPE))"
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        process = ChildProcess([sys.executable, "-c", script], os.environ)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with os.fdopen(os.dup(process.out), "rb") as out:
        assert out.read() == b"set() 1\n"  # Python sets it to ignored itself
    ended(process)
    shell = child("trap '' USR1; kill -PIPE $$; echo lives")
    assert ended(shell) == 128 + signal.SIGPIPE


def test_child_gets_broken_pipe_after_close() -> None:
    process = child("sleep 0.1; while :; do echo x; done")
    process.close()
    while process.poll() is None:
        time.sleep(0.005)
    assert process.code == 128 + signal.SIGPIPE


def test_missing_command_raises_with_name_reason_and_hint() -> None:
    with pytest.raises(CommandFailed) as caught:
        ChildProcess(["no-such-command-here"], os.environ)
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    assert str(caught.value) == (
        "cannot start 'no-such-command-here': command not found\n"
        "hint: Check that it is installed and in PATH."
    )


def test_command_that_cannot_run_raises(tmp_path: Path) -> None:
    plain, script = tmp_path / "plain", tmp_path / "script"
    plain.write_text("hello")
    script.write_text("hello")
    script.chmod(0o755)
    for name, why in (
        (str(tmp_path), "Permission denied"),
        (str(plain), "Permission denied"),
        (str(script), "not an executable format"),
        ("a\0b", "embedded null byte"),
    ):
        with pytest.raises(CommandFailed, match=why):
            ChildProcess([name], os.environ)
