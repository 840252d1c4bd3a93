"""Viewer: the server on this computer, and a page for each tab that knows its address."""

from __future__ import annotations

import contextlib
import io
import secrets
import threading

import viser

from pointmend.errors import InputError

from .page import Page
from .shared import Shared

HOST = "127.0.0.1"
_BRAND = (47, 108, 192)
_PANEL_WIDTH = 370


class _LocalServer(viser.ViserServer):
    """A server that stays on this computer, whatever a page asks for."""

    def request_share_url(self, verbose: bool = True) -> str | None:
        """Refuse to make the viewer public."""
        return None


class Viewer:
    """
    A running viewer.

    Parameters
    ----------
    shared : what its pages have in common.
    port : where it listens; any free one by default.
    """

    def __init__(self, shared: Shared, port: int | None = None) -> None:
        if port is not None and not 0 < port < 65536:
            raise InputError(f"--port is {port}; it lies between 1 and 65535")
        self._shared = shared
        self._pages: dict[int, Page] = {}
        self._lock = threading.Lock()
        # Whoever may open a page may read files as the user who started it; on a computer
        # with several users, and from web pages of others, only who was told may.
        self._secret = secrets.token_urlsafe(12)
        with contextlib.redirect_stdout(io.StringIO()):  # viser greets; the command line does it
            self._server = _LocalServer(HOST, port or 0, label="pointmend", verbose=False)
        self.port = self._server.get_port()
        if port is not None and self.port != port:
            self.stop()
            raise InputError(f"port {port} cannot be used; choose another, or none for a free one")
        gui = self._server.gui
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=_BRAND)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(_PANEL_WIDTH)
        self._server.on_client_connect(self._welcome)
        self._server.on_client_disconnect(self._farewell)

    @property
    def address(self) -> str:
        """What to open in a browser; it holds the secret that lets a page be built."""
        return f"http://{HOST}:{self.port}/?websocket=ws://{HOST}:{self.port}/{self._secret}"

    def stop(self) -> None:
        """End all runs, remove all uploads, and close the port."""
        self._shared.runner.stop()
        with self._lock:
            pages = list(self._pages.values())
            self._pages.clear()
        for page in pages:
            page.close()
        with contextlib.redirect_stdout(io.StringIO()):
            self._server.stop()

    def _welcome(self, client: viser.ClientHandle) -> None:
        """Build a page for a new tab that knows the secret."""
        # viser offers no public way to the request that opened a connection.
        connection = self._server._websock_server._live_connections.get(client.client_id)
        if connection is None or connection.request is None:
            return
        if not secrets.compare_digest(connection.request.path, f"/{self._secret}"):
            client.gui.add_markdown("Open the whole address that `pointmend view` has printed.")
            return
        page = Page(client, self._shared)
        with self._lock:
            self._pages[client.client_id] = page
        page.begin()

    def _farewell(self, client: viser.ClientHandle) -> None:
        with self._lock:
            page = self._pages.pop(client.client_id, None)
        if page is not None:
            page.close()
