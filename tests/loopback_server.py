"""What HTTP servers of tests have in common: a free port on loopback while a `with` block lasts."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # the default of 5 makes further callers wait for seconds


class LoopbackServer:
    """Serves each request as a subclass does it."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        serve = self.serve

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Headers and body are sent one after the other: without this, 40 ms apart.
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                serve(self)

            do_HEAD = do_POST = do_PUT = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self._lock = threading.Lock()
        self._http = _Http((host, 0), Handler)
        self.port = self._http.server_port
        self.address = f"http://{host}:{self.port}"

    def __enter__(self) -> Self:
        loop = {"poll_interval": 0.02}
        threading.Thread(target=self._http.serve_forever, kwargs=loop, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def serve(self, asked: BaseHTTPRequestHandler) -> None:
        """Answer a request by :func:`give`."""
        raise NotImplementedError


def body_of(asked: BaseHTTPRequestHandler) -> bytes:
    """Read what came with a request."""
    return asked.rfile.read(int(asked.headers.get("Content-Length", 0)))


def give(
    asked: BaseHTTPRequestHandler, status: int, body: bytes, headers: Mapping[str, str]
) -> None:
    """Send an answer; who asked may have given up waiting."""
    try:
        asked.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            asked.send_header(name, value)
        asked.end_headers()
        if asked.command != "HEAD":
            asked.wfile.write(body)
    except (BrokenPipeError, ConnectionResetError):
        asked.close_connection = True
