"""Run a client against a fake model: `python -m brimline.testing.fake_model -- CLIENT ARGS`.

`{base_url}` in the client's arguments and in the values of its environment becomes the address;
`--fill TEMPLATE FILE` does the same in a file. Without a client it serves until it is stopped.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from .scenario import Scenario, load
from .server import FakeModel

PLACE = "{base_url}"


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m brimline.testing.fake_model",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scenario", type=Path, help="JSON file of the replies")
    parser.add_argument("--log", type=Path, help="append one JSON line per answered call")
    parser.add_argument("--requests", type=Path, help="append one JSON line per request, whole")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    parser.add_argument(
        "--fill", nargs=2, action="append", default=[], metavar=("TEMPLATE", "FILE")
    )
    parser.add_argument("client", nargs="*", help="the client and its arguments, after --")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve, run the client, and give its exit code back."""
    given = build_parser().parse_args(arguments)
    scenario = load(given.scenario) if given.scenario else Scenario()
    with FakeModel(scenario, log=given.log, requests=given.requests, port=given.port) as model:
        for template, file in given.fill:
            Path(file).write_text(_filled(Path(template).read_text(), model), encoding="utf-8")
        if given.client:
            return _run(given.client, model)
        return _serve(model)


def _run(client: Sequence[str], model: FakeModel) -> int:
    environment = {name: _filled(value, model) for name, value in os.environ.items()}
    return subprocess.call([_filled(one, model) for one in client], env=environment)


def _serve(model: FakeModel) -> int:
    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, stop)
    print(model.base_url, flush=True)
    stopped.wait()
    return 0


def _filled(text: str, model: FakeModel) -> str:
    return text.replace(PLACE, model.base_url)


if __name__ == "__main__":
    sys.exit(main())
