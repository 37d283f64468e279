"""`brimline token create`: stores tokens, and writes their texts where nobody else can read."""

import argparse
import csv
import io
import os
import re
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec

from brimline.cli.context import CommandContext, emit_json
from brimline.cli.fleet_database import account_name, use_database
from brimline.cli.token_orders import NEVER, TokenOrder, order_of, read_orders
from brimline.errors import InvalidSettings
from brimline.files.atomic_file import sync_folder
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


class TokenPlanned(msgspec.Struct, frozen=True):
    """A token that `create --from` would create without `--dry-run`."""

    name: str
    organisation: str
    scopes: tuple[str, ...]
    expires_at: float | None
    team: str | None
    max_machines: int | None
    dry_run: bool = True


def shown_token(row: "TokenRow", text: str | None = None, machines: int = 0) -> TokenShown:
    shown = msgspec.convert(row, TokenShown, from_attributes=True)
    return msgspec.structs.replace(shown, token=text, machines=machines)


class NewToken(NamedTuple):
    """A token's text and its row; `order` is what was asked for."""

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
    with _written_files({} if path is None else {path: f"{token.text}\n"}):
        use_database(context, lambda database: _store(database, [token]))
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
    tokens = [_new_token(options.organisation, order) for order in new]
    texts = _texts_by_path(tokens, options.output) if options.output and tokens else {}
    if options.dry_run:
        if options.json:
            emit_json([msgspec.convert(each.row, TokenPlanned, from_attributes=True)
                       for each in tokens])  # fmt: skip
            return 0
        for order in new:
            print(f"would create {strip_control(order.name)}: {_describe(order)}")
        return 0
    # The files first: of a token that is stored, but in no file, the text would be lost.
    with _written_files(texts):
        if tokens:
            use_database(context, lambda database: _store(database, tokens))
    if options.json:
        emit_json([shown_token(each.row, None if texts else each.text) for each in tokens])
    elif not texts and tokens:
        print(_csv_of(tokens), end="")
    where = f" in {strip_control(options.output)}" if texts else ""
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
def _written_files(texts: Mapping[str, str]) -> Generator[None, None, None]:
    """Write new files of the user's own, by their paths; remove them if what follows fails.

    A second try must not find them. Raises InvalidSettings if there is one already.
    """
    written: list[Path] = []
    try:
        try:
            for path, text in texts.items():
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                written.append(Path(path))
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(descriptor)
            for folder in {path.parent for path in written}:
                sync_folder(folder)
        except OSError as error:
            reason = f"cannot be written: {error}"
            raise InvalidSettings("argument", "--output", reason) from error
        yield
    except BaseException:
        for path in written:
            path.unlink()
        raise


def _texts_by_path(tokens: Sequence[NewToken], output: str) -> dict[str, str]:
    """Return what to write: into a folder a file for each token, else a file with all."""
    folder = Path(output)
    if not folder.is_dir():
        return {output: _csv_of(tokens)}
    return {str(_path_in(folder, each.order)): f"{each.text}\n" for each in tokens}


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
