"""`brimline token create`: stores tokens, and writes their texts where nobody else can read."""

import argparse
import csv
import io
import os
import re
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec

from brimline.cli.context import CommandContext, emit_json
from brimline.cli.fleet_database import account_name, use_database
from brimline.cli.token_orders import NEVER, TokenOrder, order_of, read_orders
from brimline.errors import InvalidSettings
from brimline.store.postgres import translated_import_error
from brimline.terminal.text import count_of, strip_control

if TYPE_CHECKING:
    from brimline.api.identity import AccessScope
    from brimline.store.postgres.database import PostgresDatabase
    from brimline.store.postgres.tokens import TokenRow

FILE_NAME = re.compile(r"[\w@+-][\w.@+ -]{0,100}")
OUTPUT_COLUMNS = ("name", "team", "scopes", "id", "token")


class TokenShown(msgspec.Struct, frozen=True):
    """A token; `token` is its text, which only `create` shows, once. Times are in Unix seconds.

    An enrolment token has made those of `machines`, at most `max_machines`. `machine` is the id of
    the machine that has made this one.
    """

    id: str
    name: str
    organisation: str
    scopes: tuple[str, ...]
    created_at: float
    expires_at: float | None
    revoked_at: float | None
    last_used_at: float | None
    team: str | None
    machine: str | None
    max_machines: int | None
    machines: int = 0
    token: str | None = None


def shown_token(row: "TokenRow", text: str | None = None, machines: int = 0) -> TokenShown:
    shown = msgspec.convert(row, TokenShown, from_attributes=True)
    return msgspec.structs.replace(shown, token=text, machines=machines)


class NewToken(NamedTuple):
    """A token's text and its row; `order` is who asked for it."""

    order: TokenOrder
    text: str
    row: "TokenRow"


def create(context: CommandContext, options: argparse.Namespace) -> int:
    """Create the token of the arguments, or those of a file that do not exist yet."""
    if options.file is not None:
        return _create_many(context, options)
    if options.dry_run:
        raise InvalidSettings("argument", "--dry-run", "only with --from, or with revoke")
    token = _new_token(options.organisation, order_of(options))
    path: str | None = options.output
    with _new_files([path] if path is not None else []) as files:
        use_database(context, lambda database: _store(database, [token]))
        for file in files:
            os.write(file, f"{token.text}\n".encode())
    if options.json:
        emit_json(shown_token(token.row, token.text if path is None else None))
        return 0
    where = "not shown again" if path is None else f"in {strip_control(path)}"
    about = f"id {token.row.id}, {_describe(token.order)}. It is {where}."
    if path is None:
        print(token.text)
    print(about, file=sys.stderr)  # standard output has the token alone, for scripts
    return 0


def _create_many(context: CommandContext, options: argparse.Namespace) -> int:
    if options.name is not None:
        raise InvalidSettings("argument", "--name", "not allowed with --from")
    orders = read_orders(options.file, options)
    rows = use_database(context, lambda database: database.tokens.list(options.organisation))
    now = time.time()
    existing = {(row.name, row.scopes) for row in rows if row.parent is None and row.is_valid(now)}
    new = [each for each in orders if (each.name, tuple(sorted(set(each.scopes)))) not in existing]
    if len(new) < len(orders):
        known = count_of(len(orders) - len(new), "token")
        print(f"{known} of that name and scope exist already", file=sys.stderr)
    folder = Path(options.output) if options.output and Path(options.output).is_dir() else None
    paths = [options.output] if options.output and new else []
    if folder is not None:
        paths = [str(_path_in(folder, each)) for each in new]
    if options.dry_run:
        for order in new:
            print(f"would create {strip_control(order.name)}: {_describe(order)}")
        return 0
    tokens = [_new_token(options.organisation, order) for order in new]
    with _new_files(paths) as files:
        if tokens:
            use_database(context, lambda database: _store(database, tokens))
        texts = [f"{each.text}\n" for each in tokens] if folder else [_csv_of(tokens)]
        for file, text in zip(files, texts, strict=False):
            os.write(file, text.encode())
    if options.json:
        emit_json([shown_token(each.row, None if paths else each.text) for each in tokens])
    elif not paths and tokens:
        print(_csv_of(tokens), end="")
    where = f" in {strip_control(options.output)}" if paths else ""
    print(f"{count_of(len(tokens), 'token')} created{where}", file=sys.stderr)
    return 0


def _new_token(organisation: str, order: TokenOrder) -> NewToken:
    with translated_import_error():
        from brimline.server.fleet.authentication import create_token
    now, lifetime_s = time.time(), order.lifetime_s
    text, row = create_token(
        organisation,
        order.name,
        cast("tuple[AccessScope, ...]", order.scopes),  # they were checked
        now,
        expires_at=None if lifetime_s is None else now + lifetime_s,
        team=order.team,
        max_machines=order.machines,
    )
    return NewToken(order, text, row)


async def _store(database: "PostgresDatabase", tokens: Sequence[NewToken]) -> None:
    await database.tokens.create([each.row for each in tokens], account_name())


@contextmanager
def _new_files(paths: Sequence[str]) -> Generator[list[int], None, None]:
    """Open new files of the user's own, and remove them if what follows fails.

    A second try must not find them. Raises InvalidSettings if there is one already.
    """
    files: list[int] = []
    try:
        for path in paths:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            try:
                files.append(os.open(path, flags, 0o600))
            except OSError as error:
                reason = f"cannot be created: {error}"
                raise InvalidSettings("argument", "--output", reason) from error
        yield files
    except BaseException:
        for path, _ in zip(paths, files, strict=False):
            Path(path).unlink()
        raise
    finally:
        for file in files:
            os.close(file)


def _path_in(folder: Path, order: TokenOrder) -> Path:
    if not FILE_NAME.fullmatch(order.name):
        raise order.refusal("name", f"{order.name!r} cannot be the name of a file")
    return folder / f"{order.name}.token"


def _csv_of(tokens: Sequence[NewToken]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(OUTPUT_COLUMNS)
    for _, text, row in tokens:
        writer.writerow((row.name, row.team or "", " ".join(row.scopes), row.id, text))
    return out.getvalue()


def _describe(order: TokenOrder) -> str:
    parts = [f"scopes {', '.join(sorted(set(order.scopes)))}"]
    if order.team:
        parts.append(f"team {strip_control(order.team)}")
    if order.machines:
        parts.append(f"for {count_of(order.machines, 'machine')}")
    parts.append("never expires" if order.expires == NEVER else f"expires in {order.expires}")
    return ", ".join(parts)
