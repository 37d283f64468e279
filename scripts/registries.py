"""Write the model registries of the pinned clients, and compare every row with our answer.

`python scripts/registries.py` writes src/brimline/data/registries; `--check` fails if a file is out
of date, or if the window that Brimline gives to a row of a client's registry, by provider and model
alone, is wrong by more than 5 %. A client that cannot be installed is skipped, unless CI is `true`.
The licences of the clients are in src/brimline/data/LICENSES/model-registries.txt.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from brimline.agents.opencode.paths import RegistryProvider, registry_rows  # noqa: E402
from brimline.context.window import (  # noqa: E402
    Registry,
    RegistryModel,
    ResolveContext,
    shipped_registry,
    window_of,
)
from clients.install import CannotInstall, install_client, node, pins  # noqa: E402

FOLDER = ROOT / "src/brimline/data/registries"
WRONG_BY = 0.05
TIMEOUT_S = 60
MAX_TABLE_BYTES = 8 << 20

Rows = Mapping[str, Mapping[str, RegistryModel]]

PI_SCRIPT = """
import * as catalog from "@earendil-works/pi-ai/providers/all"
const models = catalog.getBuiltinProviders().flatMap((name) => catalog.getBuiltinModels(name))
const rows = models.map((model) => [model.provider, model.id, model.contextWindow, model.maxTokens])
console.log(JSON.stringify({ rows, made: catalog.getBuiltinModelDataGeneratedAt() }))
"""
# Before the registry in opencode 1.18.18, which uses it if there is no refreshed copy.
OPENCODE_MARKS = (b"OPENCODE_MODELS_PATH??", b"(()=>(")
STRING_OR_BRACE = re.compile(rb'"(?:[^"\\]|\\.)*+"|\'(?:[^\'\\]|\\.)*+\'|`(?:[^`\\]|\\.)*+`|[{}]')
# The function `tokenLimit` and the constants of Gemini CLI 0.61.0, whose bundle is not minified.
GEMINI_CASES = re.compile(r"^function tokenLimit\(model\) \{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
GEMINI_CONSTANT = re.compile(
    r"^var ([A-Z][A-Z0-9_]+) = (?:(\"[^\"]+\"|[0-9.e]+)|([A-Z][A-Z0-9_]+));$", re.MULTILINE
)


def read_pi(command: Path) -> tuple[Rows, float | None]:
    """Return the models of pi-ai, and when its table was made."""
    listed = json.loads(run_node(PI_SCRIPT, command.parents[2]))
    rows: dict[str, dict[str, RegistryModel]] = {}
    for provider, id, window, max_output in listed["rows"]:
        rows.setdefault(provider, {})[id] = RegistryModel(window, max_output)
    return rows, listed["made"] / 1000


def read_opencode(command: Path) -> tuple[Rows, float | None]:
    """Return the models of models.dev in the binary, which are there as JavaScript."""
    binary = command.read_bytes()
    start = 0
    for mark in OPENCODE_MARKS:
        start = binary.index(mark, start) + len(mark)
    literal = binary[start : find_end(binary, start)].decode()
    listed = run_node(f"console.log(JSON.stringify({literal}))")
    return registry_rows(msgspec.json.decode(listed, type=dict[str, RegistryProvider])), None


def find_end(source: bytes, start: int) -> int:
    """Return the end of a JavaScript object that starts at a place."""
    depth = 0
    for token in STRING_OR_BRACE.finditer(source, start):
        depth += {b"{": 1, b"}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    raise ValueError("the object does not end")


def read_codex(command: Path) -> tuple[Rows, float | None]:
    """Return the models.json in the binary; Codex grants a percentage of each window."""
    (binary,) = command.parents[2].glob("node_modules/@openai/codex-*/vendor/*/bin/codex")
    data = binary.read_bytes()
    start = data.rindex(b'{\n  "models": [', 0, data.index(b'"slug": "'))
    text = data[start : start + MAX_TABLE_BYTES].decode("utf-8", "replace")
    listed, _ = json.JSONDecoder().raw_decode(text)
    rows = {
        model["slug"]: RegistryModel(
            model["context_window"] * model.get("effective_context_window_percent", 95) // 100
        )
        for model in listed["models"]
        if model.get("context_window")
    }
    return {"": rows}, None


def read_gemini(command: Path) -> tuple[Rows, float | None]:
    """Return the cases of its function for the limit of tokens."""
    bundle = command.parents[1] / "@google/gemini-cli/bundle"
    for chunk in sorted(bundle.glob("chunk-*.js")):
        text = chunk.read_text("utf-8")
        if function := GEMINI_CASES.search(text):
            values: dict[str, Any] = {}
            for name, literal, constant in GEMINI_CONSTANT.findall(text):
                values[name] = json.loads(literal) if literal else values.get(constant)
            return {"": dict(gemini_rows(function[1], values))}, None
    raise ValueError("Gemini CLI keeps its limits elsewhere")


def gemini_rows(cases: str, values: dict[str, Any]) -> Iterator[tuple[str, RegistryModel]]:
    waiting: list[str] = []
    for kind, name in re.findall(r"(case|return) (\w+)", cases):
        if kind == "case":
            waiting.append(values[name])
            continue
        window = int(values.get(name, name))
        yield from ((model, RegistryModel(window)) for model in waiting)
        waiting = []


def run_node(script: str, folder: Path | None = None) -> bytes:
    """Run a module in a client's folder and return the JSON that it prints."""
    command = [str(node().binary), "--input-type=module", "-"]
    ran = subprocess.run(
        command,
        input=script.encode(),
        cwd=folder,
        capture_output=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    return ran.stdout


READERS: dict[str, Callable[[Path], tuple[Rows, float | None]]] = {
    "codex": read_codex,
    "gemini": read_gemini,
    "opencode": read_opencode,
    "pi": read_pi,
}


def build(agent: str) -> Registry:
    """The registry of a pinned client; the stored date is kept if nothing else changed."""
    rows, made_at = READERS[agent](install_client(agent))
    models = {name: dict(sorted(rows[name].items())) for name in sorted(rows)}
    version, stored = pins()[agent].version, shipped_registry(agent)
    if stored and stored.made_from.startswith(f"{agent} {version},") and stored.models == models:
        return stored
    return Registry(f"{agent} {version}, {time.strftime('%Y-%m')}", models, made_at)


def wrong_rows(agent: str, registry: Registry) -> Iterator[str]:
    """The rows of a registry for which our answer is wrong by more than 5 %, or unknown."""
    for provider, id in registry.ids():
        true = registry.models[provider][id].window
        window = window_of(ResolveContext(agent=agent, provider=provider or None, model=id))
        if window is None or abs(window.tokens - true) > WRONG_BY * true:
            ours = f"{window.tokens:,} ({window.why})" if window else "unknown"
            yield f"{agent} {provider}/{id}: {true:,}, ours is {ours}"


def check(agent: str, registry: Registry) -> bool:
    """Compare a client's registry with the stored one and with our answers, and report it."""
    wrong, count = list(wrong_rows(agent, registry)), len(list(registry.ids()))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{registry.made_from}: {count:,} rows, {len(wrong)} wrong by more than {WRONG_BY:.0%}")
    is_stale = registry != shipped_registry(agent)
    if is_stale:
        print(f"the registry of {agent} is stale: run `make catalogue`", file=sys.stderr)
    return not wrong and not is_stale


def main(arguments: list[str]) -> int:
    """Write the registries, or check them."""
    is_right = True
    for agent in READERS:
        try:
            registry = build(agent)
        except CannotInstall as error:
            print(f"{agent} is skipped: {error}", file=sys.stderr)
            is_right &= os.environ.get("CI") != "true"
            continue
        if "--check" in arguments:
            is_right &= check(agent, registry)
        elif registry != shipped_registry(agent):
            data = zlib.compress(msgspec.json.encode(registry), 9)
            FOLDER.joinpath(f"{agent}.json.z").write_bytes(data)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
