"""What tokens `brimline token create` is asked for: by its arguments, or a line of a file each."""

import argparse
import csv
from collections.abc import Iterator, Sequence

import msgspec

from brimline.errors import InvalidSettings
from brimline.files.regular_file import read_regular_file
from brimline.settings import seconds

SCOPES = ("enrol", "ingest", "read", "act")
ENROL = "enrol"
NEVER = "never"
MAX_MACHINES = 1_000_000
COLUMNS = ("name", "scopes", "expires", "team", "machines")


class TokenOrder(msgspec.Struct, frozen=True):
    """A token to create. It was asked for in `place`: with `argument`, a field is an option."""

    place: str
    name: str
    scopes: tuple[str, ...]
    expires: str
    team: str | None
    machines: int | None

    @property
    def lifetime_s(self) -> float | None:
        """How long it is valid; None if it does not end."""
        return None if self.expires == NEVER else seconds(self.expires, *self._where("expires"))

    def check(self) -> None:
        """Raise InvalidSettings if it cannot be created."""
        if (problem := self._find_problem()) is not None:
            field, reason = problem
            raise self.refusal(field, reason)
        _ = self.lifetime_s

    def refusal(self, field: str, reason: str) -> InvalidSettings:
        """Return an error about one of COLUMNS."""
        name, place = self._where(field)
        return InvalidSettings(place, name, reason)

    def _where(self, field: str) -> tuple[str, str]:
        option = "--scope" if field == "scopes" else f"--{field}"
        return (option if self.place == "argument" else field), self.place

    def _find_problem(self) -> tuple[str, str] | None:
        if not self.name:
            return "name", "missing: name the machine, team or person"
        if not self.name.isprintable():
            return "name", f"expected printable text: got {self.name!r}"
        if not self.scopes:
            return "scopes", f"missing: one or more of {', '.join(SCOPES)}"
        if unknown := next((each for each in self.scopes if each not in SCOPES), None):
            return "scopes", f"expected {', '.join(SCOPES)}: got {unknown!r}"
        if ENROL not in self.scopes:
            return ("machines", f"only with the scope {ENROL}") if self.machines else None
        if set(self.scopes) != {ENROL}:
            return "scopes", f"{ENROL} goes with no other: many machines have this token"
        if self.machines is None:
            return "machines", "missing: how many machines may make a token from this one"
        return None


def order_of(options: argparse.Namespace) -> TokenOrder:
    """Return the token that the arguments ask for; raises InvalidSettings."""
    name, scopes = (options.name or "").strip(), tuple(options.scope or ())
    order = TokenOrder("argument", name, scopes, options.expires, options.team, options.machines)
    order.check()
    return order


def read_orders(path: str, options: argparse.Namespace) -> list[TokenOrder]:
    """Return the tokens of a CSV file, for which the arguments are the defaults.

    Raises InvalidSettings, which names the line.
    """
    try:
        text = read_regular_file(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings("argument", "--from", f"cannot be read: {error}") from error
    try:
        orders = list(_read_lines(path, text, options))
    except csv.Error as error:
        raise InvalidSettings(path, "CSV", str(error)) from error
    if not orders:
        raise InvalidSettings(path, "line 2", "missing: a line for each token")
    return orders


def _read_lines(path: str, text: str, options: argparse.Namespace) -> Iterator[TokenOrder]:
    rows = csv.reader(text.splitlines(), strict=True)
    columns = [each.strip().lower() for each in next(rows, list[str]())]
    _check_columns(path, columns)
    lines: dict[str, int] = {}
    for row in rows:
        place = f"{path}, line {rows.line_num}"
        if not any(map(str.strip, row)):
            continue
        if len(row) != len(columns):
            reason = f"expected {len(columns)} values: got {len(row)}"
            raise InvalidSettings(path, f"line {rows.line_num}", reason)
        values = {name: value.strip() for name, value in zip(columns, row, strict=True)}
        machines = values.get("machines") or None
        order = TokenOrder(
            place=place,
            name=values["name"],
            scopes=tuple(values.get("scopes", "").split()) or tuple(options.scope or ()),
            expires=values.get("expires") or options.expires,
            team=values.get("team") or options.team,
            machines=options.machines if machines is None else _parse_in_line(machines, place),
        )
        order.check()
        if (earlier := lines.setdefault(order.name, rows.line_num)) != rows.line_num:
            raise order.refusal("name", f"{order.name!r} is in line {earlier} too")
        yield order


def _check_columns(path: str, columns: Sequence[str]) -> None:
    unknown = next((each for each in columns if each not in COLUMNS), None)
    if unknown is not None or "name" not in columns or len(set(columns)) < len(columns):
        reason = f"expected the columns name and any of {', '.join(COLUMNS[1:])}, separated by ','"
        raise InvalidSettings(path, "line 1", f"{reason}: got {', '.join(columns) or 'nothing'}")


def _parse_in_line(text: str, place: str) -> int:
    try:
        return parse_machines(text)
    except argparse.ArgumentTypeError as error:
        raise InvalidSettings(place, "machines", str(error)) from error


def parse_machines(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= MAX_MACHINES:
        reason = f"expected a number from 1 to {MAX_MACHINES:,}: got {text!r}"
        raise argparse.ArgumentTypeError(reason)
    return int(text)
