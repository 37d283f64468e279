"""A child process: what comes of it, and how it ends."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from brimline.errors import CommandFailed
from brimline.run.child import Child


def ended(child: Child) -> int:
    """Its exit code, once it has ended."""
    while (code := child.poll()) is None:
        time.sleep(0.005)
    child.close()
    return code


def child(script: str) -> Child:
    """A shell with a script."""
    return Child(["sh", "-c", script], os.environ)


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
def test_exit_code(script: str, code: int) -> None:
    """Its own code, or 128 and the signal that it died of; the same when asked again."""
    made = child(script)
    assert ended(made) == code
    assert made.poll() == code


def test_output() -> None:
    """Its standard output is ours to read."""
    made = child("printf hello")
    assert os.read(made.out, 100) == b"hello"
    assert os.read(made.out, 100) == b""
    ended(made)


def test_signal_after_its_end() -> None:
    """An ended child is sent nothing: its number may be another's."""
    made = child("exit 0")
    ended(made)
    made.send(signal.SIGKILL)


def test_fresh_signals() -> None:
    """It finds signals as any program does: none blocked, none ignored that Python ignores."""
    script = "import signal;print(signal.pthread_sigmask(0,[]),signal.getsignal(signal.SIGPIPE))"
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        made = Child([sys.executable, "-c", script], os.environ)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with os.fdopen(os.dup(made.out), "rb") as out:
        assert out.read() == b"set() 1\n"  # Python sets it to ignored itself
    ended(made)
    shell = child("trap '' USR1; kill -PIPE $$; echo lives")
    assert ended(shell) == 128 + signal.SIGPIPE


def test_closed_pipe() -> None:
    """Once nobody reads it, what it writes is a broken pipe to it."""
    made = child("sleep 0.1; while :; do echo x; done")
    made.close()
    while made.poll() is None:
        time.sleep(0.005)
    assert made.code == 128 + signal.SIGPIPE


def test_not_there() -> None:
    """A command that is not there: its name, why, and what to do."""
    with pytest.raises(CommandFailed) as caught:
        Child(["no-such-command-here"], os.environ)
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    assert str(caught.value) == (
        "cannot start 'no-such-command-here': command not found\n"
        "Check that it is installed and in PATH."
    )


def test_not_a_program(tmp_path: Path) -> None:
    """A folder, a file that may not be run, one that is no program, a name that is none."""
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
            Child([name], os.environ)
