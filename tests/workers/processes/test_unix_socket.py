"""A socket's path may lie in a folder that others write: what is there decides whether we connect."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from workers.processes.unix_socket import connect_unix, listen_unix


def test_a_socket_is_connected_also_by_a_path_that_no_address_holds(tmp_path: Path) -> None:
    path = tmp_path / ("deep" * 20) / ("er" * 20) / "s"
    with listen_unix(path) as listener, connect_unix(str(path), 2.0) as connection:
        listener.accept()[0].sendall(b"hello")
        assert connection.recv(8) == b"hello"


def test_a_link_in_a_sockets_place_is_refused(tmp_path: Path) -> None:
    with listen_unix(tmp_path / "other"):
        (tmp_path / "vnc.sock").symlink_to(tmp_path / "other")
        with socket.socket(socket.AF_UNIX) as plain:
            plain.connect(str(tmp_path / "vnc.sock"))  # without the check it is followed
        with pytest.raises(OSError, match="no socket of its folder's owner"):
            connect_unix(str(tmp_path / "vnc.sock"))


def test_a_file_in_a_sockets_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "agent.sock").write_text("no socket")
    with pytest.raises(ConnectionRefusedError):
        connect_unix(str(tmp_path / "agent.sock"))
