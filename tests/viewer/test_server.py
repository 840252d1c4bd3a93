import socket

import pytest

from pointmend.errors import InputError
from pointmend.viewer.jobs import Runner
from pointmend.viewer.server import Viewer
from pointmend.viewer.shared import Shared

from .conftest import load


def start(port: int | None = None) -> Viewer:
    return Viewer(Shared((), None, ["default"], load, Runner()), port)


def test_it_listens_on_this_computer_only(capsys: pytest.CaptureFixture[str]) -> None:
    viewer = start()
    try:
        assert viewer.address.startswith(f"http://127.0.0.1:{viewer.port}/")
        # 127.0.0.2 is this computer too, but not the address that is served.
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", viewer.port), timeout=5)
        assert viewer._server.request_share_url() is None
    finally:
        viewer.stop()
    assert capsys.readouterr() == ("", "")


def test_every_viewer_has_a_secret_of_its_own() -> None:
    one, other = start(), start()
    try:
        assert one.address.rpartition("/")[2] != other.address.rpartition("/")[2]
        assert len(one.address.rpartition("/")[2]) >= 16
    finally:
        one.stop()
        other.stop()


def test_a_port_that_is_taken_is_an_error() -> None:
    viewer = start()
    try:
        with pytest.raises(InputError, match=f"port {viewer.port} cannot be used"):
            start(viewer.port)
    finally:
        viewer.stop()


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_ports_that_cannot_be(port: int) -> None:
    with pytest.raises(InputError, match="between 1 and 65535"):
        start(port)
