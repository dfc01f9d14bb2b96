"""A program with the commands `worker` and `gateway` that only announce themselves and drain.

    python fake_household.py JOURNAL worker|gateway FLAGS...

Each appends to the journal what it was told and when it was stopped. The model's name can ask for
trouble: `broken` ends a worker at once, `fleeting` when the gateway is up.
"""

import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Workers(BaseHTTPRequestHandler):
    """Answers GET /workers: all are ready."""

    def do_GET(self) -> None:
        body = json.dumps({"workers": [{"id": "a", "state": "ready"}] * 9}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: what this program prints is what a test expects."""


def main(journal: Path, command: str, flags: list[str]) -> int:
    def note(text: str) -> None:
        with journal.open("a") as file:
            file.write(f"{command} {os.getpid()} {text}\n")

    def stop(number: int, frame: object) -> None:
        note("stops")
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, stop)
    note(" ".join(flags))
    model = flags[flags.index("--model-path") + 1] if command == "worker" else ""
    if model == "broken":
        print("no such model", flush=True)
        return 3
    if command == "worker":
        print(f"radixgate worker ready http=127.0.0.1:1 grpc=127.0.0.1:2 model={model}", flush=True)
    else:
        server = HTTPServer(("127.0.0.1", 0), Workers)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        at = f"http://127.0.0.1:{server.server_port}"
        print(f"radixgate gateway ready on {at} policy=test", flush=True)
    while model != "fleeting" or "gateway" not in journal.read_text():
        time.sleep(0.01)
    return 4


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
