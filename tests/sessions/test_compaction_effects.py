"""What a compaction left: facts that are kept, what was injected again, calls until an edit."""

import json
from pathlib import Path
from typing import Any

from brimline.agents.transcripts.source import Transcript
from brimline.handoff.pins import INTRO
from brimline.handoff.render import HANDOFF_INTRO
from brimline.sessions.compaction_effects import (
    CompactionEffect,
    measure_compactions,
    read_main_content,
)
from brimline.sessions.compaction_facts import CompactionFacts, FactCount
from brimline.sessions.files import SessionFiles, load_session

STATEMENT = "Please move the shipping costs into the basket, at most 4711 items."
OTHER = "Never change the public signature of the parser."


class Conversation:
    """Writes a transcript of Claude Code."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "s1.jsonl"
        self.lines: list[str] = []
        self.calls = 0

    def user(self, content: object, **more: Any) -> None:
        self._add({"type": "user", "message": {"role": "user", "content": content}, **more})

    def reply(self, *blocks: object) -> None:
        self.calls += 1
        usage = {"input_tokens": 10_000, "output_tokens": 10}
        message = {"id": f"m{self.calls}", "model": "claude-sonnet-4-5", "role": "assistant"}
        self._add(
            {"type": "assistant", "message": {**message, "usage": usage, "content": list(blocks)}}
        )

    def edit(self, file: str, is_refused: bool = False) -> None:
        id = f"t{self.calls}"
        edit = {"file_path": file, "old_string": "a", "new_string": "b"}
        self.reply({"type": "tool_use", "id": id, "name": "Edit", "input": edit})
        self.user([{"type": "tool_result", "tool_use_id": id, "is_error": is_refused}])

    def compact(self, summary: str) -> None:
        metadata = {"trigger": "auto", "preTokens": 167_000}
        self._add({"type": "system", "subtype": "compact_boundary", "compactMetadata": metadata})
        self.user(summary, isCompactSummary=True)

    def inject(self, text: str) -> None:
        added = {"type": "hook_additional_context", "hookName": "SessionStart", "content": [text]}
        self._add({"type": "attachment", "attachment": added})

    def _add(self, record: dict[str, object]) -> None:
        place = {"sessionId": "s1", "version": "2.1.325", "userType": "external"}
        self.lines.append(json.dumps({**place, **record}))

    def effects(self) -> list[CompactionEffect | None]:
        self.path.write_text("".join(f"{line}\n" for line in self.lines))
        transcript = Transcript("claude", str(self.path), 0.0, self.path.stat().st_size, "s1")
        loaded = load_session(SessionFiles("claude", "s1", (transcript,)))
        thread, content = loaded.session.threads["main"], read_main_content(transcript)
        return [each.effect for each in measure_compactions(thread, content)]


def facts(
    statements: tuple[int, int], files: tuple[int, int], numbers: tuple[int, int]
) -> CompactionFacts:
    return CompactionFacts(FactCount(*statements), FactCount(*files), FactCount(*numbers))


def test_fact_is_kept_if_summary_or_injected_text_names_it(tmp_path: Path) -> None:
    """Facts of the whole session count at each compaction, later ones only at later ones."""
    talk = Conversation(tmp_path)
    talk.user(STATEMENT)
    talk.edit("/app/src/basket.py")
    talk.edit("/app/src/refused.py", is_refused=True)
    talk.user("yes, go on")
    talk.compact("The user asked to move shipping costs into the basket, with most items.")
    injected = f"{HANDOFF_INTRO}\n> {OTHER}\nsrc/basket.py"
    talk.inject(injected)
    talk.inject("The weather is fine.")
    talk.reply()
    talk.user(OTHER)
    talk.edit("/app/src/parser.py")
    talk.compact("Nothing of it.")
    talk.inject(f"{INTRO}\n- Use 4711.")
    talk.reply()
    first, second = talk.effects()
    assert first == CompactionEffect(
        len(injected), facts((1, 1), (1, 1), (0, 1)), False, calls_to_edit=2
    )
    assert second == CompactionEffect(
        len(INTRO) + len("\n- Use 4711."), facts((0, 2), (0, 2), (1, 1)), False, calls_to_edit=None
    )


def test_clear_ends_what_counts(tmp_path: Path) -> None:
    talk = Conversation(tmp_path)
    talk.user(STATEMENT)
    talk.edit("/app/src/basket.py")
    talk.user("<command-name>/clear</command-name>")
    talk.user(OTHER)
    talk.reply()
    talk.compact(f"They said: {OTHER}")
    talk.reply()
    talk.user("<command-name>/clear</command-name>")
    talk.edit("/app/src/basket.py")
    (effect,) = talk.effects()
    assert effect == CompactionEffect(0, facts((1, 1), (0, 0), (0, 0)), False, None)


def test_two_paragraphs_together_do_not_name_a_statement(tmp_path: Path) -> None:
    talk = Conversation(tmp_path)
    talk.user(STATEMENT)
    talk.reply()
    talk.compact("Please move the shipping.\n\n- costs\n- into the basket, at most 47110 items")
    (effect,) = talk.effects()
    assert effect is not None
    assert effect.facts == facts((0, 1), (0, 0), (0, 1))


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    talk = Conversation(tmp_path)
    for folder in ("shop", "admin"):
        talk.edit(f"/app/{folder}/views.py")
    talk.compact("Changed shop/views.py.")
    (effect,) = talk.effects()
    assert effect is not None
    assert effect.facts == facts((0, 0), (1, 2), (0, 0))


def test_inferred_compaction_has_no_effect(tmp_path: Path) -> None:
    """Nothing in the file says where it was."""
    talk = Conversation(tmp_path)
    talk.user(STATEMENT)
    talk.edit("/app/src/basket.py")
    talk.lines = [line.replace('"input_tokens": 10000', '"input_tokens": 150000')
                  .replace("2.1.325", "1.0.0") for line in talk.lines]  # fmt: skip
    talk.reply()
    talk.reply()
    assert talk.effects() == [None]
