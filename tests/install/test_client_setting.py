"""One value in a client's settings: everything else stays, and what was there before comes back."""

import json
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from brimline.agents import get_agent
from brimline.agents.compaction_setting import CompactionSetting, plan_limit
from brimline.agents.transcripts.source import Places
from brimline.context.window import ResolveContext
from brimline.errors import InvalidSettings
from brimline.files.jsonc import JsonPath
from brimline.install.client_setting import (
    SettingRecord,
    load_records,
    restore_setting,
    write_setting,
)
from brimline.install.created_files import COMPACT_AT_RECORDS
from files.jsonc_texts import PLAIN, files

KEY: JsonPath = ("model", "compressionThreshold")


def setting_of(file: Path, key: JsonPath = KEY, **fields: Any) -> CompactionSetting:
    return CompactionSetting(field="fraction", key=key, file=file, **fields)


def write(state: Path, setting: CompactionSetting, value: float = 0.5) -> SettingRecord:
    wanted = SettingRecord(
        agent="gemini",
        path=str(setting.file),
        key=setting.key,
        value=value,
        at=1.0,
        model="m",
        limit=500,
        window=1_000,
        dialect=setting.dialect,
    )
    return write_setting(state, wanted, setting)


@given(files(PLAIN))
def test_any_json_file_is_restored_to_the_last_byte(text: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "settings.json")
        file.write_bytes(text.encode())
        key = ("a new group", "model", "threshold")
        record = write(Path(name), setting_of(file, key))
        assert json.loads(file.read_text(encoding="utf-8-sig"))["a new group"] == {
            "model": {"threshold": 0.5}
        }
        assert restore_setting(Path(name), record)
        assert file.read_bytes() == text.encode()


@pytest.mark.parametrize(
    ("before", "during"),
    [
        ('{"model": {"name": "x"}}', {"model": {"name": "x", "compressionThreshold": 0.5}}),
        ('{"model": {"compressionThreshold": 0.70}}', {"model": {"compressionThreshold": 0.5}}),
        ("{}\n", {"model": {"compressionThreshold": 0.5}}),
    ],
)
def test_value_of_the_user_is_restored(before: str, during: Any, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(before)
    write(tmp_path, setting_of(file), 0.6)
    record = write(tmp_path, setting_of(file))  # a second value keeps the user's own
    assert json.loads(file.read_text()) == during
    assert load_records(tmp_path) == (record,)
    assert restore_setting(tmp_path, record)
    assert file.read_text() == before
    assert not (tmp_path / COMPACT_AT_RECORDS).exists()


def test_new_file_and_folder_are_removed(tmp_path: Path) -> None:
    file = tmp_path / "home" / ".gemini" / "settings.json"
    record = write(tmp_path, setting_of(file))
    assert file.exists()
    assert restore_setting(tmp_path, record)
    assert not (tmp_path / "home").exists()


def test_siblings_are_written_and_removed_with_the_value(tmp_path: Path) -> None:
    file = tmp_path / "opencode.json"
    file.write_text('{"model": {}}')
    setting = setting_of(file, ("model", "limit", "context"), siblings={"output": 8_192})
    record = write(tmp_path, setting, 90_000)
    limit = {"context": 90_000, "output": 8_192}
    assert json.loads(file.read_text()) == {"model": {"limit": limit}}
    file.write_text('{"model": {"limit": {"context": 90000, "output": 8192, "input": 1}}}')
    assert restore_setting(tmp_path, record)
    assert json.loads(file.read_text()) == {"model": {"limit": {"output": 8_192, "input": 1}}}


@pytest.mark.parametrize("now", ['{"model": {"compressionThreshold": 0.9}}', "{}", None])
def test_value_that_someone_else_changed_stays(now: str | None, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("{}")
    record = write(tmp_path, setting_of(file))
    if now is None:
        file.unlink()
    else:
        file.write_text(now)
    assert not restore_setting(tmp_path, record)
    assert (file.read_text() if file.exists() else None) == now
    assert load_records(tmp_path) == ()


@pytest.mark.parametrize("text", ['{"model": 5}', "{", "[]"])
def test_file_that_cannot_be_changed_is_as_before(text: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)
    with pytest.raises(InvalidSettings):
        write(tmp_path, setting_of(file))
    assert file.read_text() == text
    assert load_records(tmp_path) == ()


TOML = (
    '# mine\nmodel = "gpt-5.5"\nmodel_auto_compact_token_limit = 200_000  # mine\n\n[tui]\nx = 1\n'
)


@pytest.mark.parametrize("before", [TOML, "[tui]\nx = 1\n", "", 'model = "a"\r\n[tui]\r\n', None])
def test_toml_file_is_restored_to_the_last_byte(before: str | None, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    if before is not None:
        file.write_bytes(before.encode())
    key = "model_auto_compact_token_limit"
    record = write(tmp_path, setting_of(file, (key,), dialect=None), 155_040)
    assert tomllib.loads(file.read_text())[key] == 155_040
    assert restore_setting(tmp_path, record)
    assert (file.read_bytes() if file.exists() else None) == (
        None if before is None else before.encode()
    )


KIMI = "loop_control.compaction_trigger_ratio"
LOOP = "[[hooks]]\nevent = 'Stop'\n\n[loop_control] # mine\nreserved_context_size = 9_000\n"


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(None, id="no file"),
        pytest.param("", id="empty"),
        pytest.param("[tui]\nx = 1\n", id="another table"),
        pytest.param(LOOP, id="its table"),
        pytest.param(f"{LOOP}\n[tui]\nx = 1\n", id="a table after it"),
        pytest.param(f"{LOOP}compaction_trigger_ratio = 0.70 # mine\n\n[tui]\n", id="its key"),
        pytest.param("loop_control.x = 1\n\n[tui]\nx = 1\n", id="a key with a dot"),
        pytest.param(LOOP.replace("\n", "\r\n"), id="lines of Windows"),
    ],
)
def test_key_of_a_toml_table_leaves_no_byte_behind(before: str | None, tmp_path: Path) -> None:
    """It is written next to what the table has, or at the top."""
    file = tmp_path / "config.toml"
    if before is not None:
        file.write_bytes(before.encode())
    record = write(tmp_path, setting_of(file, (KIMI,), dialect=None), 0.6)
    tables = tomllib.loads(file.read_text())
    assert tables["loop_control"]["compaction_trigger_ratio"] == 0.6
    assert ("reserved_context_size" in tables["loop_control"]) == ("reserved" in (before or ""))
    assert restore_setting(tmp_path, record)
    left = file.read_bytes().decode() if file.exists() else None
    assert left == before


@pytest.mark.parametrize("text", ["loop_control = 5\n", "[[loop_control]]\nx = 1\n"])
def test_toml_key_whose_table_is_something_else_is_named(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(InvalidSettings, match=r"loop_control: expected a table"):
        write(tmp_path, setting_of(file, (KIMI,), dialect=None), 0.6)
    assert file.read_text() == text


CASES = [
    ("claude", None, "claude-sonnet-4-5", 120_000, 153_000),
    ("codex", None, "gpt-5.5", 155_000, 155_000),
    ("gemini", None, "gemini-2.5-pro", 629_145, 0.6),
    ("kimi", None, "kimi-k2.5", 157_286, 104_858),
    ("pi", "anthropic", "claude-opus-4-8", 600_000, 400_000),
    ("opencode", "anthropic", "claude-opus-4-8", 600_000, 632_000),
    ("opencode", "openai", "gpt-5-mini", 240_000, 32_000),
]


@pytest.mark.parametrize(("agent", "provider", "model", "wanted", "value"), CASES)
def test_value_follows_from_the_rule_of_the_client(
    agent: str, provider: str | None, model: str, wanted: int, value: float, tmp_path: Path
) -> None:
    """What is written is read again by the agent's own reader, and gives the wanted limit."""
    places = Places(tmp_path, {})
    settings = get_agent(agent).source.settings(places)
    known = ResolveContext(agent=agent, model=model, provider=provider, settings=settings)
    setting = get_agent(agent).compaction_setting(places, None, known)
    assert setting is not None
    planned = plan_limit(setting, known, wanted)
    assert planned is not None
    assert (planned.value, planned.is_wanted) == (value, True)
    wanted_record = SettingRecord(
        agent=agent,
        path=str(setting.file),
        key=setting.key,
        value=planned.value,
        at=1.0,
        model=model,
        limit=planned.limit.tokens,
        window=1,
        dialect=setting.dialect,
    )
    write_setting(tmp_path / "state", wanted_record, setting)
    read = get_agent(agent).source.settings(places)
    expected = getattr(setting.applied(settings, planned.value), setting.field)
    assert getattr(read, setting.field) == expected


@pytest.mark.parametrize(
    ("agent", "model", "wanted", "limit"),
    [("claude", "claude-opus-5-5", 50_000, 67_000), ("codex", "gpt-5.5", 250_000, 244_800)],
)
def test_point_that_the_client_cannot_do_gives_the_nearest(
    agent: str, model: str, wanted: int, limit: int
) -> None:
    places = Places(Path("/nowhere"), {})
    known = ResolveContext(agent=agent, model=model)
    setting = get_agent(agent).compaction_setting(places, None, known)
    assert setting is not None
    planned = plan_limit(setting, known, wanted)
    assert planned is not None
    assert (planned.limit.tokens, planned.is_wanted) == (limit, False)


def test_records_that_are_damaged_are_named(tmp_path: Path) -> None:
    (tmp_path / COMPACT_AT_RECORDS).write_text("{")
    with pytest.raises(InvalidSettings, match="cannot be decoded"):
        load_records(tmp_path)
