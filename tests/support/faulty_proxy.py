"""An HTTP proxy before a real S3 API that fails as it is told: on the n-th request, or at a rate."""

import http.client
import http.server
import random
import socket
import struct
import threading
import time
from urllib.parse import urlsplit

PAGE = b"<!DOCTYPE html>\n<html><head><title>Portal</title><meta charset=utf-8></head><body><p>Log in<br></body></html>"
XHTML = b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body><p>Log in</p></body></html>'
PLAIN = b"<html><body><h1>It works!</h1></body></html>"
ERRORS = {503: "SlowDown", 500: "InternalError", 429: "TooManyRequests", 502: "BadGateway", 504: "GatewayTimeout"}
TRANSIENT = (503, 500, 429, 502, 504, "reset", "cut", "page", "xhtml", "plain")
"""Faults that pass. A slow answer is another: it takes as long as the reader waits."""


class FaultyProxy:
    """Forwards every request to an endpoint, unless `fault` returns the name of a fault for it.

    Faults: an HTTP status; `reset` closes the connection; `cut` answers with the half; `page`, `xhtml` and `plain`
    answer 200 with HTML; `circle` sends to the same address again; `slow` answers late.
    """

    def __init__(self, endpoint, *, names_target=False):
        """Forward to an endpoint. With `names_target` as its host, which a signature of S3 would contradict."""
        self.target = urlsplit(endpoint).netloc
        self.names_target = names_target
        self.fault = lambda number, method, path: None
        self.requests = []
        self.faults = []
        self._changed = threading.Condition()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                proxy.answer(self)

            def do_HEAD(self):
                proxy.answer(self)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # it would print into whichever test runs by then
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def reset(self):
        """Forget what was asked."""
        self.requests, self.faults = [], []

    def wait_for_requests(self, count):
        """Wait until it has read so many requests."""
        with self._changed:
            self._changed.wait_for(lambda: len(self.requests) >= count, 60)

    def at_rate(self, share, kinds=TRANSIENT, seed=0):
        """Fail this share of the requests, with one kind of fault after the other."""
        chance, kinds = random.Random(seed), list(kinds)
        self.fault = lambda number, *_: kinds[number % len(kinds)] if chance.random() < share else None

    def on_request(self, wanted, kind):
        """Fail the n-th request, counted from 0, and no other."""
        self.fault = lambda number, *_: kind if number == wanted else None

    def always(self, kind):
        self.fault = lambda *_: kind

    def never(self):
        self.fault = lambda *_: None

    def answer(self, request):
        with self._changed:
            number = len(self.requests)
            self.requests.append((request.command, request.path))
            self._changed.notify_all()
            kind = self.fault(number, request.command, request.path)
            if kind is not None:
                self.faults.append(kind)
        if isinstance(kind, int):
            code = ERRORS[kind]
            body = f"<Error><Code>{code}</Code><Message>Please try again</Message></Error>".encode()
            self.send(request, kind, {"Content-Type": "application/xml"}, body)
        elif kind in ("page", "xhtml", "plain"):
            body = {"page": PAGE, "xhtml": XHTML, "plain": PLAIN}[kind]
            self.send(request, 200, {"Content-Type": "text/html; charset=utf-8"}, body)
        elif kind == "circle":
            self.send(request, 307, {"Location": self.url + request.path}, b"")
        elif kind == "reset":
            request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            request.close_connection = True
            request.connection.close()
        else:
            if kind == "slow":
                time.sleep(2)
            self._forward(request, is_cut=kind == "cut")

    def _forward(self, request, *, is_cut):
        connection = http.client.HTTPConnection(self.target, timeout=30)
        try:
            left_out = {"connection", "host"} if self.names_target else {"connection"}
            headers = {name: value for name, value in request.headers.items() if name.lower() not in left_out}
            connection.request(request.command, request.path, headers=headers)
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        kept = {
            name: value
            for name, value in response.getheaders()
            if name.lower() not in ("connection", "transfer-encoding", "content-length", "date", "server")
        }
        length = response.getheader("Content-Length") if request.command == "HEAD" else str(len(body))
        self.send(request, response.status, kept, body, length=length, is_cut=is_cut)

    def send(self, request, status, headers, body, *, length=None, is_cut=False):
        try:
            request.send_response(status)
            for name, value in headers.items():
                request.send_header(name, value)
            request.send_header("Content-Length", length or str(len(body)))
            request.end_headers()
            if request.command != "HEAD":
                request.wfile.write(body[: len(body) // 2] if is_cut else body)
            if is_cut:
                request.close_connection = True
        except OSError:
            pass  # whoever asked has gone
