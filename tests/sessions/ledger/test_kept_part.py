"""What stays after a compaction, from recorded sessions of real clients."""

from pathlib import Path

from brimline.agents import get_agent
from brimline.agents.transcripts.source import Places
from brimline.sessions.files import SessionFiles
from brimline.sessions.ledger.context_parts import CATEGORIES
from brimline.sessions.ledger.kept_part import read_kept_part

FIXTURES = Path(__file__).parents[2] / "fixtures"


def recorded(scene: str) -> tuple[SessionFiles, Places]:
    """The transcripts of a scene, the main ones first."""
    places = Places(FIXTURES / scene / "home", {})
    agent = scene.partition("/")[0]
    found = sorted(get_agent(agent).transcripts(places), key=lambda each: each.thread != "main")
    return SessionFiles(agent, found[0].session or "", tuple(found)), places


def test_largest_part_after_the_last_compaction_is_named() -> None:
    part = read_kept_part(*recorded("claude/auto-compact"))
    assert part is not None
    name, tokens = part
    assert name in CATEGORIES
    assert tokens > 0


def test_session_without_a_compaction_keeps_nothing() -> None:
    assert read_kept_part(*recorded("claude/tool-loop")) is None


def test_subagents_alone_have_no_main_thread() -> None:
    files, places = recorded("claude/subagent-sync")
    others = tuple(each for each in files.transcripts if each.thread != "main")
    assert others
    assert read_kept_part(SessionFiles("claude", files.session, others), places) is None


def test_removed_transcript_keeps_nothing() -> None:
    files, places = recorded("claude/auto-compact")
    (gone,) = (each for each in files.transcripts if each.thread == "main")
    missing = type(gone)(gone.agent, f"{gone.path}.gone", 0, 0)
    assert read_kept_part(SessionFiles("claude", "s", (missing,)), places) is None
