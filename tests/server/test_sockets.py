"""The daemon's sockets and its lock."""

import fcntl
import os
import socket
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from brimline.daemon import sockets
from brimline.daemon.peer_credentials import check_own_peer
from brimline.daemon.sockets import (
    DEFAULT_PORT,
    HOST,
    LOCK_WAIT_S,
    MAX_USUAL_PORTS,
    find_unresponsive,
    hold_instance_lock,
    listen_tcp,
    listen_unix,
)
from brimline.errors import AlreadyRunning, UnsafeFolder

USUAL_PORTS = range(DEFAULT_PORT, DEFAULT_PORT + MAX_USUAL_PORTS)


def test_requested_port_in_use_is_refused() -> None:
    with closing(socket.create_server((HOST, 0))) as other:
        port = other.getsockname()[1]
        with pytest.raises(AlreadyRunning, match=str(port)):
            listen_tcp(port)


def test_two_daemons_without_a_requested_port_get_different_ones() -> None:
    with closing(listen_tcp(None)) as one, closing(listen_tcp(None)) as other:
        ports = [listener.getsockname()[1] for listener in (one, other)]
    assert len(set(ports)) == 2
    assert all(port in USUAL_PORTS or port > 1_023 for port in ports)


def test_daemon_without_a_requested_port_takes_its_last_else_the_next_usual_one() -> None:
    with closing(listen_tcp(None)) as first:
        taken = first.getsockname()[1]
        with closing(listen_tcp(None, last=taken)) as second:
            moved = second.getsockname()[1]
            assert moved != taken
            if taken in USUAL_PORTS and moved in USUAL_PORTS:
                assert moved > taken
    with closing(listen_tcp(None, last=moved)) as again:
        assert again.getsockname()[1] == moved


# The lock.


def test_second_holder_is_refused_and_learns_the_pid_of_the_first(tmp_path: Path) -> None:
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
def test_lock_without_a_pid_is_reported_with_a_hint(tmp_path: Path, text: bytes) -> None:
    lock = tmp_path / "lock"
    lock.write_bytes(text)
    with lock.open() as lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        holds = find_unresponsive(lock)
    assert holds is not None
    assert holds.pid is None
    assert "an unknown process holds" in str(holds)
    assert f"stop it: `fuser -k {lock}`" in str(holds)


def test_short_lock_of_a_query_does_not_prevent_a_start(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with lock.open("w") as lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        threading.Timer(LOCK_WAIT_S / 4, fcntl.flock, (lock_file, fcntl.LOCK_UN)).start()
        with hold_instance_lock(lock):
            assert find_unresponsive(lock) is not None


# The user's own sockets.


def test_socket_can_be_removed_twice_and_after_close(tmp_path: Path) -> None:
    path = tmp_path / "hook.sock"
    listener = listen_unix(path)
    assert listener.is_reachable()
    listener.close()
    listener.unlink()
    assert not listener.is_reachable()
    assert not path.exists()
    listener.unlink()


def test_socket_of_another_process_is_not_removed(tmp_path: Path) -> None:
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


def test_folder_in_tmp_is_private_and_no_symlink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_socket_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "http.sock"
    with closing(listen_unix(path)), closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.connect(str(path))
        check_own_peer(connection)
        user = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: user)
        with pytest.raises(PermissionError, match="listens there"):
            check_own_peer(connection)
