"""Where a daemon listens, and the lock that it holds."""

import fcntl
import os
import socket
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from brimline.errors import AlreadyRunning, UnsafeFolder
from brimline.server import sockets
from brimline.server.peer_credentials import check_own_peer
from brimline.server.sockets import (
    DEFAULT_PORT,
    HOST,
    LOCK_WAIT_S,
    find_unresponsive,
    hold_instance_lock,
    listen_tcp,
    listen_unix,
)


def test_port_that_is_asked_for() -> None:
    """A port that another has is refused where that very one was asked for."""
    with closing(socket.create_server((HOST, 0))) as other:
        port = other.getsockname()[1]
        with pytest.raises(AlreadyRunning, match=str(port)):
            listen_tcp(port)


def test_any_port() -> None:
    """Two that ask for none get one each, whoever has the usual one."""
    with closing(listen_tcp(None)) as one, closing(listen_tcp(None)) as other:
        ports = [made.getsockname()[1] for made in (one, other)]
    assert len(set(ports)) == 2
    assert all(port == DEFAULT_PORT or port > 1_023 for port in ports)


# The lock.


def test_one_holds_it(tmp_path: Path) -> None:
    """A second one is refused while the first lives; whose it is, is told to who asks."""
    lock = tmp_path / "lock"
    assert find_unresponsive(lock) is None
    lock.write_text("1234567890")
    with hold_instance_lock(lock):
        with pytest.raises(AlreadyRunning, match=str(tmp_path)), hold_instance_lock(lock):
            pass
        holds = find_unresponsive(lock)
        assert holds is not None
        assert (holds.pid, holds.place) == (os.getpid(), str(lock))
        assert f"process {os.getpid()} holds {lock}, but the daemon does not answer\n" in str(holds)
        assert f"stop it: `kill -9 {os.getpid()}`." in str(holds)
    assert find_unresponsive(lock) is None
    with hold_instance_lock(lock):
        pass


@pytest.mark.parametrize("text", [b"", b"x" * 100, "²".encode()])
def test_holder_that_does_not_say_who_it_is(tmp_path: Path, text: bytes) -> None:
    """A lock without a process in it names none, and says how to find it."""
    lock = tmp_path / "lock"
    lock.write_bytes(text)
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        holds = find_unresponsive(lock)
    assert holds is not None
    assert holds.pid is None
    assert "an unknown process holds" in str(holds)
    assert f"stop it: `fuser -k {lock}`" in str(holds)


def test_who_asks_is_no_holder(tmp_path: Path) -> None:
    """One that has the lock for a moment does not keep a daemon from starting."""
    lock = tmp_path / "lock"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        threading.Timer(LOCK_WAIT_S / 4, fcntl.flock, (held, fcntl.LOCK_UN)).start()
        with hold_instance_lock(lock):
            assert find_unresponsive(lock) is not None


# The user's own sockets.


def test_socket_is_taken_away(tmp_path: Path) -> None:
    """A socket is there until it is taken away; twice is no harm, nor is it when it is closed."""
    path = tmp_path / "hook.sock"
    made = listen_unix(path)
    assert made.is_reachable()
    made.close()
    made.unlink()
    assert not made.is_reachable()
    assert not path.exists()
    made.unlink()


def test_socket_of_another(tmp_path: Path) -> None:
    """What another has put in its place is left to it."""
    path = tmp_path / "hook.sock"
    one = listen_unix(path)
    path.unlink()
    assert not one.is_reachable()
    with closing(listen_unix(path)) as other:
        assert not one.is_reachable()
    one.close()
    with closing(listen_unix(path)) as other:
        one.unlink()
        assert other.is_reachable()
        other.unlink()
        assert not path.exists()


def test_folder_of_short_sockets_is_for_one_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder in /tmp is made 0700, and a link in its place is refused."""
    folder = tmp_path / "brimline-0"

    def short_folder(user: int) -> Path:
        return folder

    monkeypatch.setattr(sockets, "short_socket_folder", short_folder)
    folder.mkdir(mode=0o755)
    listen_unix(folder / "hook.sock").close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    with pytest.raises(UnsafeFolder, match="it is a link"):
        listen_unix(folder / "hook.sock")


def test_who_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is for our own daemon is told to no other user's."""
    path = tmp_path / "http.sock"
    with closing(listen_unix(path)), closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.connect(str(path))
        check_own_peer(connection)
        user = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: user)
        with pytest.raises(PermissionError, match="listens there"):
            check_own_peer(connection)
