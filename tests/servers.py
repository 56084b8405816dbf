"""A run that is explored by a server of its own, as a person starts it."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path


@dataclass(frozen=True)
class Server:
    """A process that serves a run's page."""

    process: subprocess.Popen
    port: int
    token: str

    @property
    def page(self) -> str:
        """The address that is printed."""
        return f"{self.address}/?token={self.token}"

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body=None, **headers: str | None) -> tuple[int, str, dict[str, str]]:
        """A request with these headers, of which "host" and "cookie" may be any; its status, text and headers."""
        given = {"host": f"127.0.0.1:{self.port}", "cookie": f"sqvae-{self.port}={self.token}"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in given.items():
                if value is not None:
                    connection.putheader(name, value)
            chunked = body is not None and not isinstance(body, bytes)
            if isinstance(body, bytes):
                connection.putheader("content-length", str(len(body)))
            elif chunked:
                connection.putheader("transfer-encoding", "chunked")
            with suppress(BrokenPipeError, ConnectionResetError):  # where it answers before all was sent
                connection.endheaders(body, encode_chunked=chunked)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()

    def upload_address(self) -> str:
        """Where a new tab sends its files."""
        status, page, _ = self.ask("GET", "/")
        assert status == 200
        found = re.search(r"/upload/[0-9a-f-]{36}/first", page)
        assert found is not None
        return found[0]

    def most_memory(self) -> int:
        """Bytes that the process has had at most."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])


@contextmanager
def explored(run: Path, *options: str) -> Iterator[Server]:
    """A server that is stopped as a person stops it."""
    command = [sys.executable, "-m", "sqvae", "explore", str(run), "--no-open", *options]
    environment = {**os.environ, "COLUMNS": "200", "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, env=environment, cwd=run.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        said = ""
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", said)):
            line = process.stdout.readline()
            assert line, said
            said += line
        yield Server(process, int(found[1]), found[2])
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=30)[0]
        assert process.returncode == 0, rest
        assert "Traceback" not in rest, rest
    finally:
        process.kill()
        process.wait()
