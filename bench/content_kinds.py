"""Texts of the kinds that agents send: prose, code, data, and what tools print."""

import base64
import csv
import io
import json
import random
import string
import sysconfig
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from difflib import unified_diff
from pathlib import Path

ROOT = Path(__file__).parent.parent
STDLIB = Path(sysconfig.get_paths()["stdlib"])
CHARS = 24_000

EMOJI = "😀😂🥰👍🎉🔥✅🚀💡🐛🧪📦⚠️❤️👩‍💻🏳️‍🌈🇩🇪🤷🏽‍♀️🧑‍🚀🍕"
START = datetime(2026, 3, 1, 12, 0, 0)


def read_languages() -> dict[str, str]:
    """Articles of the Universal Declaration of Human Rights, by language."""
    lines = (Path(__file__).with_name("languages.txt")).read_text("utf-8").splitlines()
    named = (line.partition("\t") for line in lines)
    return {name: cut(f"{text.rstrip()} ") for name, _, text in named}


def cut(text: str) -> str:
    """A text of CHARS characters: repeated, or its beginning."""
    return (text * (CHARS // len(text) + 1))[:CHARS]


def files(folder: Path, pattern: str) -> str:
    """The files of a folder, one after the other."""
    paths = sorted(path for path in folder.rglob(pattern) if "node_modules" not in path.parts)
    return cut("".join(path.read_text("utf-8") for path in paths[:60]))


def lines(make: Callable[[int], str]) -> str:
    return cut("".join(f"{make(number)}\n" for number in range(600)))


def random_bytes(rng: random.Random, count: int = CHARS) -> bytes:
    return rng.randbytes(count)


def rows(rng: random.Random) -> list[dict[str, object]]:
    """Rows as an API returns them."""
    names = ("Alice", "Bob", "Chandra", "Dmitri", "Eve", "Farid")
    return [
        {
            "id": number,
            "name": rng.choice(names),
            "email": f"{rng.choice(names).lower()}{rng.randrange(999)}@example.com",
            "score": round(rng.random() * 100, 3),
            "active": rng.random() < 0.5,
            "tags": rng.sample(["red", "green", "blue", "new"], 2),
            "created_at": (START + timedelta(seconds=rng.randrange(10**7))).isoformat() + "Z",
            "parent": None,
        }
        for number in range(200)
    ]


def table(rng: random.Random) -> str:
    target = io.StringIO()
    writer = csv.writer(target)
    for number in range(900):
        day = START + timedelta(hours=number)
        writer.writerow(
            [number, day.date(), f"{rng.gauss(0, 50):.4f}", rng.randrange(10**6), "EUR"]
        )
    return cut(target.getvalue())


def diff(rng: random.Random) -> str:
    """What `git diff` prints of changed Python code."""
    before = files(STDLIB / "json", "*.py").splitlines()
    after = [line for line in before if rng.random() > 0.1]
    after = [line.replace("self", "this") if rng.random() < 0.1 else line for line in after]
    return cut("\n".join(unified_diff(before, after, "a/json/decoder.py", "b/json/decoder.py")))


def log(rng: random.Random) -> str:
    levels = ("INFO", "DEBUG", "WARN", "ERROR")
    return lines(
        lambda number: (
            f"{(START + timedelta(milliseconds=137 * number)).isoformat()} {rng.choice(levels)} "
            f"[worker-{rng.randrange(16)}] app.http: GET /v1/items/{rng.randrange(10**6)} "
            f"{rng.choice([200, 404, 500])} {rng.random() * 900:.1f}ms 10.0.{rng.randrange(255)}.7"
        )
    )


def listing(rng: random.Random) -> str:
    return lines(
        lambda number: (
            f"-rw-r--r--  1 root root {rng.randrange(10**7):>9} Mar {1 + number % 28:>2} 12:0"
            f"{number % 10} file_{rng.randrange(10**4):04}.{rng.choice(['py', 'txt', 'json'])}"
        )
    )


def trace() -> str:
    return lines(
        lambda number: (
            f'  File "/home/user/app/src/service/handlers_{number % 7}.py", line {37 + number}, in '
            f"handle_request\n    return await self.pool.execute(query, timeout={number % 90})\n"
            f"ValueError: invalid literal for int() with base 10: 'x{number}'"
        )
    )


def hexdump(rng: random.Random) -> str:
    return lines(
        lambda number: f"{number * 16:08x}  " + " ".join(f"{b:02x}" for b in rng.randbytes(16))
    )


def tokens(rng: random.Random) -> str:
    """Web tokens, as they stand in headers."""
    return lines(
        lambda _: (
            "Authorization: Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
            + base64.urlsafe_b64encode(random_bytes(rng, 90)).decode()
        )
    )


def boxes(rng: random.Random) -> str:
    return lines(
        lambda _: (
            "│ "
            + " │ ".join(f"{rng.choice(['ok', 'failed', 'skipped']):<10}" for _ in range(5))
            + " │\n├"
            + "┼".join("─" * 12 for _ in range(5))
            + "┤"
        )
    )


def colours(rng: random.Random) -> str:
    """What a test runner prints in a terminal."""
    return lines(
        lambda number: (
            f"\x1b[32m✔\x1b[0m \x1b[1mtest_{rng.randrange(99)}\x1b[22m \x1b[2m({number} ms)\x1b[22m"
        )
    )


def processes(rng: random.Random) -> str:
    return lines(
        lambda number: (
            f"root     {rng.randrange(99999):>7}  {rng.random():.1f}  {rng.random():.1f} "
            f"{rng.randrange(10**6):>7} {rng.randrange(9999):>5} ?        Ssl  03:{number % 60:02} "
            f"  0:0{number % 10} /usr/bin/worker --config=/etc/worker-{number % 7}.conf"
        )
    )


def assembly(rng: random.Random) -> str:
    return lines(
        lambda number: (
            f"  {0x401000 + number * 4:x}:\t{rng.randbytes(4).hex(' ')}\tmovl    "
            f"${hex(rng.randrange(9999))},%{rng.choice(['rax', 'r12', 'ebx'])}  "
            f"# <main+{hex(number)}>"
        )
    )


def prose() -> str:
    """Paragraphs of our documentation, without tables, lists and code."""
    text = "\n\n".join(
        path.read_text("utf-8") for path in sorted((ROOT / "docs" / "concepts").glob("*.md"))
    )
    return cut("\n\n".join(part for part in text.split("\n\n") if part[:1].isupper()))


def minified() -> str:
    """The scripts of the dashboard, as they are served."""
    return files(ROOT / "src" / "brimline" / "api" / "page" / "assets", "*.js")


def create_kinds() -> dict[str, str]:
    """A text of every kind; the same with each call."""
    rng = random.Random(7)
    data = rows(rng)
    plain = (ROOT / "LICENSE").read_text("utf-8")
    return {
        "prose": prose(),
        "licence": cut(plain),
        "Markdown": files(ROOT / "docs" / "guides", "*.md"),
        **read_languages(),
        "emoji": cut(EMOJI),
        "Python": files(STDLIB / "asyncio", "*.py"),
        "TypeScript": files(ROOT / "web", "*.ts"),
        "C": files(ROOT / "src", "*.c"),
        "minified JS": minified(),
        "CSS": files(ROOT / "web", "*.css"),
        "HTML": lines(
            lambda n: (
                f'<tr class="row {"odd" if n % 2 else "even"}"><td>{n}</td><td><a '
                f'href="/item/{n * 7919}">Item {n}</a></td></tr>'
            )
        ),
        "SQL": lines(
            lambda n: (
                f"INSERT INTO orders (id, customer_id, total_cents, created_at) VALUES ({n}, "
                f"{rng.randrange(9999)}, {rng.randrange(99999)}, "
                f"'2026-03-{1 + n % 28:02} 12:00:00');"
            )
        ),
        "YAML": files(ROOT / "deploy", "*.yaml"),
        "JSON": cut(json.dumps(data, separators=(",", ":"))),
        "indented JSON": cut(json.dumps(data, indent=2)),
        "CSV": table(rng),
        "numbers": cut(json.dumps([rng.randrange(10**6) for _ in range(4000)])),
        "floats": lines(lambda _: " ".join(f"{rng.gauss(0, 1): .8e}" for _ in range(4))),
        "base64": cut(base64.encodebytes(random_bytes(rng)).decode()),
        "hex": cut(random_bytes(rng).hex()),
        "hexdump": hexdump(rng),
        "UUIDs": lines(lambda _: str(uuid.UUID(int=rng.getrandbits(128)))),
        "hashes": lines(lambda n: f"{rng.randbytes(20).hex()}  dist/file-{n}.tar.gz"),
        "web tokens": tokens(rng),
        "random letters": cut("".join(rng.choices(string.ascii_letters, k=CHARS))),
        "paths": lines(
            lambda n: f"./node_modules/@types/pkg-{n}/dist/esm/{rng.choice('abc')}{n}.d.ts.map"
        ),
        "URLs": lines(
            lambda n: (
                f"https://cdn.example.com/assets/v{n}/img?id={rng.randrange(10**9)}&w=640&q=80"
            )
        ),
        "diff": diff(rng),
        "log": log(rng),
        "listing": listing(rng),
        "stack trace": trace(),
        "box drawing": boxes(rng),
        "blank lines": cut("\n\n    \n" * 400),
        "punctuation": cut("".join(rng.choices(string.punctuation, k=CHARS))),
        "sequences": lines(lambda _: "".join(rng.choices("ACGT", k=60))),
        "constants": lines(lambda n: f"export MAX_RETRY_COUNT_{n}=${{DEFAULT_LIMIT:-{n}}}"),
        "capitals": prose().upper(),
        "numbered lines": cut(
            "".join(
                f"{number:6}\t{line}\n"
                for number, line in enumerate(files(STDLIB / "json", "*.py").splitlines(), 1)
            )
        ),
        "package lock": (ROOT / "web" / "package-lock.json").read_text("utf-8")[:CHARS],
        "JSON in JSON": cut(json.dumps({"content": json.dumps(data)})),
        "tabs": lines(lambda _: "\t".join(str(rng.randrange(10**7)) for _ in range(6))),
        "Markdown table": lines(
            lambda n: f"| row {n} | `name_{n % 9}` | {rng.randrange(999)} | {rng.random():.2f} % |"
        ),
        "Windows paths": lines(
            lambda n: rf"C:\Users\worker\AppData\Local\Temp\pytest-{n}\output_{n % 7}.log"
        ),
        "base32": cut(base64.b32encode(random_bytes(rng)).decode()),
        "mathematics": cut("∀x∈ℝ: ∑ᵢ aᵢ·xⁱ ≤ ∫₀^∞ e^{−t²} dt ⇒ ∃δ>0 ∧ ‖f−g‖₂ < ε ∴ ∇·E = ρ/ε₀ "),
        "progress bars": cut("▁▂▃▄▅▆▇█ 45% ████████░░░░░░ 12/30 → done ✓\n"),
        "colours": colours(rng),
        "processes": processes(rng),
        "assembly": assembly(rng),
        "LaTeX": lines(
            lambda n: rf"\frac{{\partial f_{n}}}{{\partial x}} = \sum_{{i=0}}^{{n}} a_i x^i"
        ),
    }


# Kinds for which an estimate must not be much too high.
PROSE_AND_CODE = (
    *(
        "prose",
        "licence",
        "Markdown",
        "German",
        "French",
        "Russian",
        "Chinese",
        "Japanese",
        "Korean",
    ),
    *("Spanish", "Italian", "Polish", "Finnish", "Turkish", "Vietnamese", "Indonesian", "Swahili"),
    *("Ukrainian", "Greek", "Hebrew", "Urdu", "Bengali", "Tamil", "Thai", "Georgian", "Amharic"),
    *("traditional Chinese", "Danish", "numbered lines"),
    *("Python", "TypeScript", "C", "CSS", "SQL", "YAML", "HTML"),
)
