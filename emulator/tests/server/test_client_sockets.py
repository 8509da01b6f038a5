"""Cutting connections ends only the given peer's connection."""

import os
import socket
from pathlib import Path

from datastore_emulator.server import client_sockets


def descriptors() -> set[str]:
    return {each.name for each in Path("/dev/fd").iterdir()}


def test_only_the_connection_of_the_peer_is_cut() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        clients = [socket.create_connection(server.getsockname()) for _ in range(2)]
        accepted = [server.accept()[0] for _ in clients]
        client_sockets.cut(f"ipv4:127.0.0.1:{clients[0].getsockname()[1]}")
        assert clients[0].recv(1) == b""
        accepted[1].sendall(b"x")
        assert clients[1].recv(1) == b"x"
        for each in (*clients, *accepted):
            each.close()


def test_no_descriptor_is_left_behind(tmp_path: Path) -> None:
    """The pipe's reader could not end if a copy of the write end remained open."""
    reader, writer = os.pipe()
    with (tmp_path / "file").open("w"):
        before = descriptors()
        client_sockets.cut("ipv4:127.0.0.1:1")
        assert len(descriptors()) == len(before)
    os.close(writer)
    assert os.read(reader, 1) == b""
    os.close(reader)
