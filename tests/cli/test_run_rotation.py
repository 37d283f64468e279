"""`brimline run --rotate-at` with programs that stand in for an agent: what can go wrong."""

import json
import os
import signal
from typing import Any

import pytest

from brimline.handoff.user_messages import CONTINUED_TEXT
from server.running import Running as Daemon

from .children import Running, program
from .terminal import Completed, User
from .test_run_signals import until

pytestmark = pytest.mark.slow

# A Claude Code that writes stream and transcript. `plan` has a list of steps for each window, and
# `prompts` gets a line for each start. A step is what a call sends, or something to do.
STAND_IN = """
import json, os, signal, subprocess, sys, time, uuid
prompt = sys.argv[sys.argv.index("-p") + 1]
with open("prompts", "a") as file:
    row = {"prompt": prompt, "words": sys.argv[1:], "env": dict(os.environ)}
    file.write(json.dumps(row) + "\\n")
number = len(open("prompts").readlines())
plan = json.load(open("plan"))
steps = plan[min(number, len(plan)) - 1]
session = str(uuid.uuid4())
folder = os.path.join(os.environ["CLAUDE_CONFIG_DIR"], "projects", "-p")
os.makedirs(folder, exist_ok=True)
transcript = open(os.path.join(folder, session + ".jsonl"), "a")
MODEL = "claude-sonnet-4-5"
def emit(record):
    print(json.dumps(record, separators=(",", ":")), flush=True)
def store(kind, message):
    now = time.time()
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03}Z"
    record = {"type": kind, "sessionId": session, "cwd": os.getcwd(), "version": "2.1.325",
              "isSidechain": False, "uuid": str(uuid.uuid4()), "timestamp": at, "message": message}
    transcript.write(json.dumps(record, separators=(",", ":")) + "\\n")
    transcript.flush()
emit({"type": "system", "subtype": "init", "cwd": os.getcwd(), "session_id": session,
      "model": MODEL, "claude_code_version": "2.1.325"})
store("user", {"role": "user", "content": prompt})
code, calls = 0, 0
for step in steps:
    if isinstance(step, int):
        calls += 1
        text = f"Part {number}.{calls} is done." if "silent" not in steps else ""
        content = [{"type": "text", "text": text}] if text else []
        content.append({"type": "tool_use", "id": f"t{calls}", "name": "Bash",
                        "input": {"command": f"ls {number}"}})
        usage = {"input_tokens": 4, "cache_creation_input_tokens": 0, "output_tokens": 9,
                 "cache_read_input_tokens": step - 4}
        message = {"id": f"{session}-{calls}", "model": MODEL, "role": "assistant",
                   "content": content, "usage": usage}
        store("assistant", message)
        emit({"type": "assistant", "message": message, "parent_tool_use_id": None,
              "session_id": session})
        time.sleep(0.25)
    elif step == "hand over":
        open("notes.md", "w").write(f"Document {number}.")
        words = [sys.executable, "-m", "brimline", "handoff", "notes.md"]
        here = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session}
        subprocess.run(words, stdout=sys.stderr, env={**os.environ, **here})
    elif step == "hang":
        while True:
            time.sleep(0.1)
    elif step == "say it":
        emit({"type": "assistant", "message": {"id": "said", "model": MODEL, "role": "assistant",
              "content": [{"type": "text", "text": "LOOP COMPLETE"}]}, "session_id": session})
    elif step == "fail":
        code = 7
sys.exit(code)
"""
LOW, HIGH = 60_000, 130_000  # of a limit of 167,000
TASK = "Build the parser."

Step = int | str


def stand_in(user: User, *windows: list[Step]) -> str:
    """Install the stand-in with the steps of each of its starts; the last ones are repeated."""
    (user.cwd / "plan").write_text(json.dumps(windows))
    return program(user, "claude", STAND_IN)


def starts(user: User) -> list[dict[str, Any]]:
    """Each start of the stand-in: its prompt, its words, its environment."""
    path = user.cwd / "prompts"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def rotate(user: User, command: str, *options: str) -> Completed:
    words = ["--rotate-at", "75", *options, "--", command, "-p", TASK, "--verbose"]
    return user.run("run", "--render", "none", *words)


def with_daemon(user: User, daemon: Daemon) -> None:
    user.env["BRIMLINE_STATE_DIR"] = str(daemon.state)
    user.env["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")


# Without a daemon nothing asks the agent: it is stopped at the level, and continued from a draft.


def test_session_continues_from_a_draft_without_a_daemon(user: User) -> None:
    command = stand_in(user, [LOW, LOW, HIGH, "hang"], [LOW])
    completed = rotate(user, command)
    assert completed.code == 0, completed.err
    first, second = starts(user)
    assert first["prompt"] == TASK
    assert second["prompt"].startswith(f"{TASK} (2)\n\n{CONTINUED_TEXT}")
    assert "# Draft handoff" in second["prompt"]
    assert "Part 1.3 is done." in second["prompt"]
    assert second["prompt"].count(f"> {TASK}") == 1
    assert second["words"] == ["-p", second["prompt"], "--verbose"]
    assert [start["env"]["BRIMLINE_WINDOW"] for start in (first, second)] == ["1", "2"]
    assert "at 78% of the limit: continuing from a draft" in completed.err
    lines = completed.err.splitlines()
    assert lines[-4].split()[2:] == ["3", "$0.08", "65%", "(130K/200K)", "-", "0", "a", "draft"]
    assert lines[-3].split()[2:] == ["1", "$0.02", "30%", "(60K/200K)", "60K", "0", "-"]


def test_draft_keeps_what_the_window_before_handed_over(user: User) -> None:
    command = stand_in(user, [LOW, HIGH, "hang"], [LOW, HIGH, "hang"], [LOW])
    assert rotate(user, command).code == 0
    third = starts(user)[2]["prompt"]
    assert "Part 2.2 is done." in third
    assert "Part 1.2 is done." in third
    assert third.count(CONTINUED_TEXT) == 1


def test_child_that_ends_below_the_level_ends_the_run(user: User) -> None:
    completed = rotate(user, stand_in(user, [LOW, LOW]))
    assert (completed.code, len(starts(user))) == (0, 1)
    assert "window" not in completed.err


def test_child_that_fails_is_not_continued(user: User) -> None:
    completed = rotate(user, stand_in(user, [LOW, "fail"]))
    assert (completed.code, len(starts(user))) == (7, 1)


def test_agent_that_never_replies_is_continued_three_times(user: User) -> None:
    """The fourth window goes on: the client's own compaction remains."""
    command = stand_in(user, ["silent", LOW, HIGH, HIGH, HIGH, HIGH])
    completed = rotate(user, command)
    assert len(starts(user)) == 4
    assert "not rotated: 3 windows in a row" in completed.err


def test_window_that_begins_at_the_level_is_no_progress(user: User) -> None:
    """Also if the agent replies: the handoff and the tools alone fill it."""
    completed = rotate(user, stand_in(user, [HIGH, HIGH, HIGH, HIGH]))
    assert len(starts(user)) == 4
    assert "not rotated: 3 windows in a row" in completed.err


def test_no_more_rotations_than_allowed(user: User) -> None:
    command = stand_in(user, [LOW, HIGH, HIGH, HIGH])
    completed = rotate(user, command, "--max-rotations", "2")
    assert len(starts(user)) == 3
    assert "not rotated: no rotation is left (--max-rotations 2)" in completed.err


def test_iterations_and_until_keep_their_meaning(user: User) -> None:
    """A rotation is no iteration: the second one begins with the prompt of the command."""
    command = stand_in(user, [LOW, HIGH, "hang"], [LOW], [LOW, HIGH, "hang"], [LOW, "say it"])
    events = user.cwd / "events.jsonl"
    completed = rotate(
        user, command, "--iterations", "5", "--until", "LOOP COMPLETE", "--events", str(events)
    )
    assert completed.code == 0
    assert [start["prompt"] == TASK for start in starts(user)] == [True, False, True, False]
    iterations = [start["env"]["BRIMLINE_ITERATION"] for start in starts(user)]
    assert iterations == ["1", "1", "2", "2"]
    rows = [json.loads(line) for line in events.read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [1, 2]
    assert [row["payload"]["peak_context_tokens"] for row in rows] == [HIGH, HIGH]


def test_json_has_the_windows_and_their_sums(user: User) -> None:
    command = stand_in(user, [LOW, HIGH, "hang"], [LOW])
    words = ["--rotate-at", "75", "--json", "--", command, "-p", TASK]
    result = user.run("run", *words).json
    assert [window["calls"] for window in result["windows"]] == [2, 1]
    assert [window["handoff"] for window in result["windows"]] == ["draft", None]
    assert [window["read_again_tokens"] for window in result["windows"]] == [None, LOW]
    assert (result["context_tokens"], result["peak_context_tokens"]) == (LOW, HIGH)


# With a daemon. The stand-in has no hooks: it hands over at its own time, or not.


def test_session_continues_from_the_document_of_the_agent(user: User, daemon: Daemon) -> None:
    with_daemon(user, daemon)
    completed = rotate(user, stand_in(user, [LOW, HIGH, "hand over", HIGH], [LOW]))
    assert completed.code == 0, completed.err
    assert "at 78% of the limit: asked for a handoff" in completed.err
    assert "A new session continues from them.\nEnd your turn now." in completed.err
    second = starts(user)[1]["prompt"]
    assert "Document 1." in second
    assert "# Draft handoff" not in second


def test_agent_that_writes_no_document_is_stopped_after_ten_calls(
    user: User, daemon: Daemon
) -> None:
    with_daemon(user, daemon)
    completed = rotate(user, stand_in(user, [LOW, *[HIGH] * 20, "hang"], [LOW]))
    assert "no handoff came in time: continuing from a draft" in completed.err
    prompt = starts(user)[1]["prompt"]
    assert "# Draft handoff" in prompt
    assert "Part 1.20 is done." not in prompt


def test_agent_that_goes_on_after_its_document_is_stopped(user: User, daemon: Daemon) -> None:
    with_daemon(user, daemon)
    command = stand_in(user, [LOW, HIGH, "hand over", *[HIGH] * 8, "hang"], [LOW])
    completed = rotate(user, command)
    assert completed.code == 0
    assert "Document 1." in starts(user)[1]["prompt"]


def test_agent_that_ends_without_a_document_has_finished(user: User, daemon: Daemon) -> None:
    with_daemon(user, daemon)
    completed = rotate(user, stand_in(user, [LOW, HIGH, HIGH]))
    assert (completed.code, len(starts(user))) == (0, 1)
    messages = daemon.get("/v1/messages?ended=1")
    assert messages == []  # the request was withdrawn


# The report.


def test_report_has_the_rotations_and_what_they_cost(user: User) -> None:
    assert "No rotations found" in user.run("report", "--rotations").out
    rotate(user, stand_in(user, [LOW, HIGH, "hang"], [50_000, HIGH, "hang"], [40_000]))
    rotate(user, stand_in(user, [LOW]))
    (chain,) = user.run("report", "--rotations", "--json").json
    assert (chain["agent"], chain["rotations"], chain["compactions"]) == ("claude", 2, 0)
    assert (chain["read_again_tokens"], chain["cache_write_tokens"]) == (90_000, 0)
    assert chain["cost_usd"] == pytest.approx(0.0273, abs=1e-4)
    assert (len(chain["sessions"]), chain["title"]) == (3, TASK)
    shown = user.run("report", "--rotations").out
    assert shown.splitlines()[1].split()[-5:] == ["2", "0", "90K", "0", "$0.03"]
    assert "2 rotations: as many compactions avoided, none done by clients" in shown
    rows = user.run("report", "--rotations", "--csv").lines
    assert rows[0].startswith("first_day,agent,title")
    assert len(rows) == 2
    assert "No rotations" in user.run("report", "--rotations", "--until", "2020-01-01").out


def test_report_of_removed_transcripts_is_unknown(user: User) -> None:
    rotate(user, stand_in(user, [LOW, HIGH, "hang"], [LOW]))
    for path in user.projects.rglob("*.jsonl"):
        path.unlink()
    (chain,) = user.run("report", "--rotations", "--json").json
    assert (chain["rotations"], chain["read_again_tokens"], chain["cost_usd"]) == (1, None, None)


# Interrupted.


def start(user: User, command: str) -> Running:
    words = ["--render", "none", "--rotate-at", "75"]
    return Running(user, *words, "--", command, "-p", TASK, "--verbose")


def transcript_has(user: User, text: str) -> bool:
    return any(text in path.read_text() for path in user.projects.rglob("*.jsonl"))


def test_same_command_continues_after_ctrl_c(user: User) -> None:
    command = stand_in(user, [LOW, HIGH, "hang"], [LOW, LOW, "hang"], [LOW])
    running = start(user, command)
    until(lambda: transcript_has(user, "Part 2.2"))
    running.send(signal.SIGINT)
    code, _, err = running.end()
    assert code == 128 + signal.SIGINT
    assert "interrupted in window 2: the same command continues from there" in err
    again = rotate(user, command)
    assert again.code == 0, again.err
    assert "continues the run that was interrupted in window 2" in again.err
    third = starts(user)[2]["prompt"]
    assert "Part 2.2 is done." in third
    assert "Part 1.2 is done." in third
    windows_of = [line.split()[0] for line in again.err.splitlines()[-5:-1]]
    assert windows_of == ["1", "2", "3", "all"]
    # It ended: the next one begins anew.
    rotate(user, command)
    assert starts(user)[3]["prompt"] == TASK


def test_same_command_continues_after_a_kill(user: User) -> None:
    command = stand_in(user, [LOW, HIGH, "hang"], [LOW, LOW, "hang"], [LOW])
    running = start(user, command)
    until(lambda: transcript_has(user, "Part 2.2"))
    running.send(signal.SIGKILL)
    # The agent itself lives on: two must not work at the same time.
    refused = rotate(user, command)
    assert refused.code == 2
    assert "the agent of the run that was interrupted still runs: pid" in refused.err
    os.kill(int(refused.err.partition("pid ")[2].split()[0]), signal.SIGKILL)
    running.end()
    again = rotate(user, command)
    assert again.code == 0, again.err
    assert "Part 2.2 is done." in starts(user)[2]["prompt"]


def test_restart_begins_anew(user: User) -> None:
    command = stand_in(user, [LOW, LOW, "hang"], [LOW])
    running = start(user, command)
    until(lambda: transcript_has(user, "Part 1.2"))
    running.send(signal.SIGTERM)
    running.end()
    assert rotate(user, command, "--restart").code == 0
    assert starts(user)[1]["prompt"] == TASK


# Refused before anything is run.


@pytest.mark.parametrize(
    ("words", "reason", "hint"),
    [
        (["./agent.sh"], "cannot find the prompt of './agent.sh'", "Run Claude Code or Codex"),
        (["claude", "Go"], "expected -p or --print", "Only a headless run"),
    ],
)
def test_command_without_a_prompt_is_refused(
    user: User, words: list[str], reason: str, hint: str
) -> None:
    completed = user.run("run", "--rotate-at", "75", "--", *words)
    assert completed.code == 2
    assert reason in completed.err
    assert hint in completed.err


@pytest.mark.parametrize(
    "options", [["--rotate-at", "95"], ["--max-rotations", "3"], ["--restart"]]
)
def test_options_that_do_not_fit_are_refused(user: User, options: list[str]) -> None:
    completed = user.run("run", *options, "--", "claude", "-p", "Go")
    assert completed.code == 2
    assert options[0].removeprefix("--") in completed.err
