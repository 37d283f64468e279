"""The real clients in a real tmux: what their panes show, and what is typed into them."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from _pytest.mark import ParameterSet

from brimline.daemon.tmux.clear import INTERRUPTED, PROMPTED
from brimline.daemon.tmux.clear_requests import load_requests
from brimline.daemon.tmux.typist import Typist
from brimline.sessions.rotation_report import read_rotations
from brimline.testing.fake_model import Ramp, Reply, Scenario
from server.running import Running

from .claude import bash
from .codex import shell
from .interactive import CLIENTS, Interactive
from .monitored.base import TRIES
from .pi import bash as pi_bash

pytestmark = [pytest.mark.clients, pytest.mark.slow]

USER_STATUS_LINE = "my own line"
HOOKS_OF_A_TURN = 3  # the session's start, its first prompt, and the end of the turn
CONTINUE_TEXT = "and continue from where you left off."

Open = Callable[..., Interactive]


class TmuxDaemon(Running):
    """A daemon that finds the tmux of a test as one of the user's."""

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the daemon, with the folder of its tmux sockets."""
        return super().environment | {"TMUX_TMPDIR": str(self.folder / "tmux")}

    def add_tmux(self, socket: str) -> None:
        """Add a tmux to those that the daemon searches."""
        place = self.folder / "tmux" / f"tmux-{os.getuid()}" / "default"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(socket)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[TmuxDaemon]:
    """A running daemon, stopped after the test."""
    running = TmuxDaemon(tmp_path / "daemon")
    # The folder of Pi exists already: a new one is found only after half a minute.
    (running.home / ".pi/agent/sessions").mkdir(parents=True)
    running.start()
    yield running
    running.close()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens clients in panes, and closes them after the test."""
    clients: list[Interactive] = []

    def open_client(agent: str, scenario: Scenario, **more: Any) -> Interactive:
        clients.append(Interactive(agent, tmp_path / agent, scenario, **more))
        return clients[-1]

    yield open_client
    for client in clients:
        client.close()


@pytest.fixture
def set_up(daemon: TmuxDaemon, opened: Open, tmp_path: Path) -> Callable[..., Interactive]:
    """Opens Claude Code with our hooks, beside the user's own status line."""

    def open_client(
        scenario: Scenario, without: str | None = None, **variables: str
    ) -> Interactive:
        settings = tmp_path / "claude/home/.claude/settings.json"
        settings.parent.mkdir(parents=True)
        own = {"statusLine": {"type": "command", "command": f"echo '{USER_STATUS_LINE}'"}}
        settings.write_text(json.dumps(own))
        done = daemon.command("setup", "claude", HOME=str(tmp_path / "claude/home"))
        assert done.returncode == 0, done.stdout + done.stderr
        if without is not None:
            written = json.loads(settings.read_text())
            del written["hooks"][without]
            settings.write_text(json.dumps(written))
        # Only the test starts the daemon again after a kill.
        environment = {"BRIMLINE_STATE_DIR": str(daemon.state), "BRIMLINE_AUTOSTART": "0"}
        return opened("claude", scenario, environment=environment | variables)

    return open_client


def sessions(daemon: Running) -> list[Any]:
    """Every session that the daemon knows, the last one first."""
    return daemon.get("/v1/sessions")


def thread_states(daemon: Running) -> set[str]:
    """The states of all threads."""
    return {thread["state"] for view in sessions(daemon) for thread in view["threads"]}


def has_sent(views: list[Any], least: int, below: int = 200_000) -> bool:
    """Whether the last call of some thread sent at least this much."""
    sent = [thread["sent"] for view in views for thread in view["threads"]]
    return any(number is not None and least <= number < below for number in sent)


def requests_with(client: Interactive, text: str) -> list[str]:
    """The requests that contain a text."""
    return [body for body in client.requests() if text in body]


def hand_over(after: str = "true") -> str:
    """The command that writes a handoff document and requests a clear."""
    command = shlex.join([sys.executable, "-m", "brimline", "handoff", "notes.md", "--clear"])
    return f"echo 'The parser is half done.' > notes.md && {command} && {after}"


def agent_param(agent: str) -> ParameterSet:
    """An agent; those that start slowly are tried in the long tests."""
    return pytest.param(agent, marks=[pytest.mark.long] * (agent in ("gemini", "opencode")))


# Without a daemon.


@pytest.mark.parametrize("agent", [agent_param(agent) for agent in sorted(CLIENTS)])
def test_composer_is_seen_empty_and_filled_and_takes_a_message(
    opened: Open, tmp_path: Path, agent: str
) -> None:
    client = opened(agent, Scenario(otherwise=Reply(text="I see.")))
    client.type("half a thou")
    client.until(lambda: client.composer(agent).text == "half a thou", "the words are not seen")
    tmux = Typist(tmp_path, client_timeout_s=20.0)
    told = asyncio.run(tmux.submit(client.pane, agent, "A message."))
    assert (told.submitted, told.reason) == (False, "there is text in the composer")
    client.press("-N", "11", "BSpace")
    client.until_composer(agent)
    text = "A message of two lines:\nlook at the tests."
    told = asyncio.run(tmux.submit(client.pane, agent, text))
    assert told.submitted, f"{told}\n{client.text}"
    client.until(lambda: requests_with(client, "look at the tests."), "no request contains it")
    assert not requests_with(client, "half a thou")


def test_nothing_is_typed_into_a_permission_dialog(opened: Open, tmp_path: Path) -> None:
    """It would be taken for the answer."""
    scenario = Scenario(main=(bash("touch /dev/null"),))
    asks = ("--permission-mode", "default", "--disallowedTools", "Read")
    client = opened(
        "claude", scenario, arguments=(*asks, "--settings", '{"permissions":{"ask":["Bash"]}}')
    )
    client.say("Go.")
    client.until(lambda: "Do you want to proceed?" in client.text, "it does not ask")
    told = asyncio.run(Typist(tmp_path).submit(client.pane, "claude", "1", while_busy=True))
    assert (told.submitted, told.reason) == (False, "the composer was not recognised")
    assert "Do you want to proceed?" in client.text


# What the daemon does.


def test_pane_shows_our_status_line_and_the_earlier_one_of_the_user(
    daemon: Running, set_up: Callable[[Scenario], Interactive]
) -> None:
    said = [f"Done {n}." for n in range(TRIES)]
    replies = tuple(Reply(text=text, added=0) for text in said)
    client = set_up(Scenario(main=replies, ramp=Ramp(start=90_000)))

    def both() -> bool:
        return "/200K" in client.text and USER_STATUS_LINE in client.text

    for text in said:  # the client draws it at each turn, for which a busy machine may be too slow
        client.say("Go.")
        client.until(lambda text=text: text in client.text, "there is no reply")
        client.until_composer("claude")
        if client.soon(both):
            return
    pytest.fail(f"both lines were never shown\n{client.text}")


def test_quotas_cache_and_cause_of_a_miss_are_those_of_the_client(
    daemon: Running, set_up: Callable[..., Interactive]
) -> None:
    """With a login the client reads its quotas from headers of the API."""
    resets_at = int(time.time()) + 7_200
    limits = {"status": "allowed", "5h-utilization": "0.62", "5h-reset": str(resets_at)}
    limits |= {"7d-utilization": "0.41", "7d-reset": str(resets_at + 86_400)}
    headers = {f"anthropic-ratelimit-unified-{name}": text for name, text in limits.items()}
    texts = ("One.", "Two.", "Three.", "Four.")
    # It diagnoses a miss if the call before has read from the cache.
    replies = tuple(Reply(text=text, cold=text == "Three.") for text in texts)
    login = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-dummy"}
    client = set_up(Scenario(main=replies, headers=headers), **login)
    for text in texts:
        client.say("Go.")
        client.until(lambda text=text: text in client.text, "there is no reply")
        client.until_composer("claude")

    def is_reported() -> bool:
        (view,) = sessions(daemon)
        cache = view["prompt_cache"]
        return cache is not None and cache["requests"] == len(replies)

    client.until(is_reported, "the last call is not reported")
    (view,) = sessions(daemon)
    assert view["quotas"]["five_hour"] == {"used_percentage": 62, "resets_at": resets_at}
    assert view["quotas"]["seven_day"]["used_percentage"] == 41
    cache = view["prompt_cache"]
    timeline = daemon.get(f"/v1/sessions/{view['session']['id']}/timeline")
    last = timeline["calls"][-1]
    lifetime_s = 3_600 if last["cache_write_1h"] else 300
    assert (cache["origin"], cache["warm"]) == ("reported", True)
    assert abs(cache["expires_at"] - last["at"] - lifetime_s) < 60
    sent = last["input"] + last["cache_read"] + last["cache_write"]
    assert cache["recache_tokens_if_cold"] == sent
    (miss,) = timeline["misses"]
    assert (miss["number"], miss["cause"]) == (3, "dropped by the provider")
    assert miss["reported"] == "likely_server_side"
    assert "5h 62.0%" in client.text


@pytest.mark.long
def test_readings_from_before_a_clear_do_not_count(
    daemon: Running, set_up: Callable[[Scenario], Interactive]
) -> None:
    ramp = Ramp(start=140_000)
    client = set_up(Scenario(main=(Reply(text="One."), Reply(text="Two.", added=0)), ramp=ramp))
    client.say("Go.")
    (before,) = daemon.until("/v1/sessions", lambda views: has_sent(views, 140_000))
    client.until_composer("claude")
    client.say("/clear")
    client.until(lambda: "One." not in client.text, "it is not cleared")
    client.until_composer("claude")
    client.say("Again.")
    found = daemon.until("/v1/sessions", lambda views: has_sent(views, 1, 140_000))
    assert len(found) == 2
    assert before["session"]["id"] in [view["session"]["id"] for view in found]


@pytest.mark.parametrize(
    ("agent", "command"),
    [
        ("claude", "/clear"),
        ("codex", "/clear"),
        pytest.param("gemini", "/clear", marks=pytest.mark.long),
        ("pi", "/new"),
    ],
)
def test_pending_message_follows_a_clear_to_the_new_session(
    daemon: Running, opened: Open, tmp_path: Path, agent: str, command: str
) -> None:
    done = daemon.command("setup", agent, HOME=str(tmp_path / agent / "home"))
    assert done.returncode == 0, done.stdout + done.stderr
    state = {"BRIMLINE_STATE_DIR": str(daemon.state)}
    client = opened(agent, Scenario(otherwise=Reply(text="I see.")), environment=state)
    client.say("Go.")
    (view,) = daemon.until("/v1/sessions", lambda found: found and found[0]["threads"])
    daemon.until("/v1/daemon", lambda told: told["heard"] >= HOOKS_OF_A_TURN)
    client.until_composer(agent)
    done = daemon.command("send", view["session"]["id"], "Look at the tests.")
    assert done.returncode == 0, done.stderr
    client.say(command)
    client.until(lambda: "I see." not in client.text, "it is not cleared")
    client.until_composer(agent)
    client.say("Again.")
    client.until(lambda: requests_with(client, "Look at the tests."), "no request contains it")
    assert "Again." in requests_with(client, "Look at the tests.")[0]
    found = {each["session"]["id"]: each["session"]["became"] for each in sessions(daemon)}
    assert len(found) == 2
    assert found[view["session"]["id"]] in found


def test_compaction_that_is_not_carried_out_leaves_no_compacting_state(
    daemon: Running, set_up: Callable[[Scenario], Interactive]
) -> None:
    client = set_up(Scenario(main=(Reply(text="Done."),)))
    client.say("/compact")
    client.until(lambda: "Not enough messages to compact" in client.text)
    client.until_composer("claude")
    client.say("Go.")
    client.until(lambda: "Done." in client.text)
    daemon.until("/v1/sessions", lambda found: found and found[0]["threads"])
    assert "compacting" not in thread_states(daemon)


def test_handoff_with_clear_continues_in_a_fresh_session(
    daemon: Running, set_up: Callable[[Scenario], Interactive]
) -> None:
    client = set_up(Scenario(main=(bash(hand_over()), Reply(text="I end my turn."))))
    client.say("The first task.")
    client.until(lambda: requests_with(client, CONTINUE_TEXT), "no request contains the prompt")
    (first, *_) = requests_with(client, CONTINUE_TEXT)
    assert f"{client.place.project / 'notes.md'} {CONTINUE_TEXT}" in first
    assert "The first task." not in first
    client.until(lambda: load_requests(daemon.state)[0].step == "done")
    (intent,) = load_requests(daemon.state)
    listed = daemon.command("handoff", "--list", "--session", intent.session)
    assert f"as session {str(intent.after)[:8]}" in listed.stdout
    assert intent.after != intent.session


def test_handoff_with_clear_of_codex_is_seen_in_its_pane(
    daemon: Running, opened: Open, tmp_path: Path
) -> None:
    """Codex reports a clear only with the next prompt."""
    done = daemon.command("setup", "codex", HOME=str(tmp_path / "codex/home"))
    assert done.returncode == 0, done.stdout + done.stderr
    scenario = Scenario(
        main=(shell(hand_over()), Reply(text="I end my turn.")), otherwise=Reply(text="I go on.")
    )
    state = {"BRIMLINE_STATE_DIR": str(daemon.state)}
    client = opened("codex", scenario, environment=state)
    client.say("The first task.")
    client.until(lambda: load_requests(daemon.state), "there is no intent")
    client.until(
        lambda: load_requests(daemon.state)[0].step in ("done", "failed"), "it is not over"
    )
    (intent,) = load_requests(daemon.state)
    assert intent.why is None
    assert intent.after not in (None, intent.session)
    client.until(lambda: requests_with(client, CONTINUE_TEXT), "no request contains the prompt")
    assert "The first task." not in requests_with(client, CONTINUE_TEXT)[-1]


def set_rotation(daemon: Running, level: float) -> None:
    """Restart the daemon with `rotate_at` in the user's settings."""
    daemon.stop()
    file = daemon.home / ".config/brimline/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"[handoff]\nrotate_at = {level}\n")
    daemon.start()


def filled(reply: Reply, added: int) -> Reply:
    return msgspec.structs.replace(reply, added=added)


def test_session_at_its_level_is_handed_over_cleared_and_continued(
    daemon: Running, set_up: Callable[[Scenario], Interactive]
) -> None:
    """The agent is asked once, in the words that clear the session when its turn ends."""
    set_rotation(daemon, 75)
    asked = msgspec.structs.replace(bash(hand_over()), when="the session is cleared, and continues")
    full = tuple(filled(bash(f"echo {n}; sleep 0.5"), 110_000) for n in range(3))
    end = filled(Reply(text="I end my turn."), 110_000)
    main = (filled(asked, 110_000), *full, end)
    client = set_up(Scenario(main=main, otherwise=Reply(text="On.")))
    client.say("The first task.")
    client.until(lambda: requests_with(client, CONTINUE_TEXT), "no request contains the prompt")
    (first, *_) = requests_with(client, CONTINUE_TEXT)
    assert f"{client.place.project / 'notes.md'} {CONTINUE_TEXT}" in first
    assert "The first task." not in first
    client.until(lambda: load_requests(daemon.state)[0].step == "done")
    (rotation,) = read_rotations(daemon.state)
    assert (rotation.session, rotation.by) == (load_requests(daemon.state)[0].session, "clear")
    asks = [body for body in client.requests() if "the session is cleared, and continues" in body]
    assert asks[-1].count("the session is cleared, and continues") == 1


def test_session_of_codex_at_its_level_is_handed_over_and_cleared(
    daemon: Running, opened: Open, tmp_path: Path
) -> None:
    """Its hooks do not say whether a user is at the client: its pane shows it."""
    set_rotation(daemon, 75)
    done = daemon.command("setup", "codex", HOME=str(tmp_path / "codex/home"))
    assert done.returncode == 0, done.stdout + done.stderr
    asked = msgspec.structs.replace(shell(hand_over()), when="is cleared, and continues")
    full = tuple(filled(shell(f"echo {n}; sleep 1"), 185_000) for n in range(4))
    title = Reply(text="A task", when="Generate a concise")  # in a session of its own
    end = filled(Reply(text="I end my turn."), 185_000)
    main = (title, filled(asked, 185_000), *full, end)
    state = {"BRIMLINE_STATE_DIR": str(daemon.state), "BRIMLINE_AUTOSTART": "0"}
    client = opened("codex", Scenario(main=main, otherwise=Reply(text="On.")), environment=state)
    client.say("The first task.")
    client.until(lambda: requests_with(client, CONTINUE_TEXT), "no request contains the prompt")
    assert "The first task." not in requests_with(client, CONTINUE_TEXT)[-1]
    (intent,) = load_requests(daemon.state)
    assert intent.path.endswith("notes.md")


def test_session_without_a_document_continues_from_a_draft(
    daemon: Running, set_up: Callable[[Scenario], Interactive]
) -> None:
    """An agent that goes on until 92 percent of the limit is cleared when its turn ends."""
    set_rotation(daemon, 75)
    full = tuple(filled(bash(f"echo part {n}; sleep 0.5"), 140_000) for n in range(3))
    end = filled(Reply(text="I end my turn."), 140_000)
    client = set_up(Scenario(main=(*full, end), otherwise=Reply(text="On.")))
    client.say("The first task.")
    client.until(lambda: requests_with(client, CONTINUE_TEXT), "no request contains the prompt")
    (intent,) = load_requests(daemon.state)
    draft = Path(intent.path).read_text()
    assert "The first task." in draft
    assert draft.startswith("# Draft handoff")


@pytest.mark.long
def test_person_who_types_is_not_interrupted_by_a_rotation(
    daemon: Running, set_up: Callable[[Scenario], Interactive]
) -> None:
    set_rotation(daemon, 75)
    full = tuple(filled(bash(f"echo part {n}; sleep 1"), 140_000) for n in range(3))
    client = set_up(Scenario(main=(*full, filled(Reply(text="I end."), 140_000))))
    client.say("The first task.")
    client.until(lambda: load_requests(daemon.state), "there is no intent")
    client.type("half a thou")
    client.until(lambda: load_requests(daemon.state)[0].step == "failed", "it did not fail")
    assert client.composer("claude").text == "half a thou"
    assert "The first task." in client.text


@pytest.mark.long
def test_clear_is_done_once_after_the_daemon_was_killed(
    daemon: Running, set_up: Callable[[Scenario], Interactive]
) -> None:
    client = set_up(Scenario(main=(bash(hand_over("sleep 3")), Reply(text="I end."))))
    client.say("The first task.")
    client.until(lambda: load_requests(daemon.state), "there is no intent")
    daemon.kill()
    daemon.start()
    client.until(lambda: requests_with(client, CONTINUE_TEXT), "no request contains the prompt")
    client.until(lambda: load_requests(daemon.state)[0].step == "done")
    client.until_composer("claude")
    assert client.text.count("/clear") == 1


@pytest.mark.long
def test_text_typed_by_the_user_prevents_the_clear(
    daemon: Running, set_up: Callable[[Scenario], Interactive]
) -> None:
    client = set_up(Scenario(main=(bash(hand_over("sleep 3")), Reply(text="I end."))))
    client.say("The first task.")
    client.until(lambda: load_requests(daemon.state), "there is no intent")
    client.type("half a thou")
    client.until(lambda: load_requests(daemon.state)[0].step == "failed", "it did not fail")
    assert client.composer("claude").text == "half a thou"
    assert "The first task." in client.text
    listed = daemon.command(
        "handoff", "--list", "--session", load_requests(daemon.state)[0].session
    )
    assert "there is text in the composer" in listed.stdout


@pytest.mark.long
def test_new_task_after_an_interrupt_prevents_the_clear(
    daemon: Running, set_up: Callable[[Scenario], Interactive]
) -> None:
    client = set_up(Scenario(main=(bash(hand_over("sleep 60")), Reply(text="It is done."))))
    client.say("The first task.")
    client.until(lambda: load_requests(daemon.state), "there is no intent")
    client.press("Escape")
    client.until_composer("claude")
    client.say("A NEW TASK")
    client.until(lambda: "It is done." in client.text, "there is no reply")
    (intent,) = load_requests(daemon.state)
    assert (intent.step, intent.why) == ("failed", PROMPTED)
    assert not client.soon(lambda: requests_with(client, CONTINUE_TEXT))
    assert "A NEW TASK" in client.text


@pytest.mark.long
def test_interrupted_turn_without_a_new_task_cancels_the_clear(
    daemon: Running, set_up: Callable[[Scenario], Interactive]
) -> None:
    client = set_up(Scenario(main=(bash(hand_over("sleep 60")),)))
    client.say("The first task.")
    client.until(lambda: load_requests(daemon.state), "there is no intent")
    client.press("Escape")
    client.until(lambda: load_requests(daemon.state)[0].step == "failed", "it is not called off")
    assert load_requests(daemon.state)[0].why == INTERRUPTED
    assert "The first task." in client.text


@pytest.mark.long
def test_prompt_queued_during_the_turn_prevents_the_clear(
    daemon: Running, set_up: Callable[[Scenario], Interactive]
) -> None:
    client = set_up(Scenario(main=(bash(hand_over("sleep 5")), Reply(text="I read it."))))
    client.say("The first task.")
    client.until(lambda: load_requests(daemon.state), "there is no intent")
    client.say("And mind the tests.")
    client.until(lambda: "I read it." in client.text, "there is no reply")
    assert requests_with(client, "And mind the tests.")
    assert (load_requests(daemon.state)[0].step, load_requests(daemon.state)[0].why) == (
        "failed",
        PROMPTED,
    )


@pytest.mark.long
def test_clear_is_refused_while_a_prompt_is_queued(
    daemon: Running, set_up: Callable[[Scenario], Interactive]
) -> None:
    client = set_up(Scenario(main=(bash(f"sleep 5; {hand_over()}"), Reply(text="I read it."))))
    client.say("The first task.")
    client.until(lambda: "sleep 5" in client.text, "it does not begin")
    client.say("And mind the tests.")
    client.until(lambda: "I read it." in client.text, "there is no reply")
    assert load_requests(daemon.state) == []
    assert "has not been read yet" in requests_with(client, "And mind the tests.")[0]


def test_message_that_asks_for_it_is_read_before_an_interactive_turn_ends(
    daemon: Running, set_up: Callable[[Scenario], Interactive]
) -> None:
    """Another one waits for the next prompt."""
    send = shlex.join([sys.executable, "-m", "brimline", "send"]) + ' "$CLAUDE_CODE_SESSION_ID"'
    command = f"{send} 'No hurry.' && {send} 'Mind the tests.' --block-stop"
    client = set_up(
        Scenario(main=(bash(command), Reply(text="I stop.")), otherwise=Reply(text="I see."))
    )
    client.say("Go.")
    client.until(lambda: "I see." in client.text, "its turn has ended")
    assert "Stop hook says" in client.text
    assert "Stop hook error" not in client.text
    (first, *_) = requests_with(client, "] Mind the tests.")
    assert "I stop." in first
    assert first.count("] Mind the tests.") == 1
    assert not requests_with(client, "] No hurry.")
    client.until_composer("claude")
    client.say("Again.")
    client.until(lambda: requests_with(client, "] No hurry."), "no request contains it")


def test_message_that_asks_for_it_is_read_before_a_turn_of_pi_ends(
    daemon: TmuxDaemon, opened: Open, tmp_path: Path
) -> None:
    """Its extension reports that the session is interactive."""
    done = daemon.command("setup", "pi", HOME=str(tmp_path / "pi/home"))
    assert done.returncode == 0, done.stdout + done.stderr
    send = shlex.join([sys.executable, "-m", "brimline", "send"]) + ' "$PI_SESSION_ID"'
    scenario = Scenario(
        main=(pi_bash(f"{send} 'Mind the tests.' --block-stop"), Reply(text="I stop.")),
        otherwise=Reply(text="I see."),
    )
    client = opened("pi", scenario, environment={"BRIMLINE_STATE_DIR": str(daemon.state)})
    client.say("Go.")
    client.until(lambda: "I see." in client.text, "its turn has ended")
    (first, *_) = requests_with(client, "] Mind the tests.")
    assert "I stop." in first


def test_last_level_is_read_before_an_interactive_turn_ends_if_set(
    daemon: Running, set_up: Callable[..., Interactive]
) -> None:
    """The client reports no tool results here, so that the level is pending when the turn ends."""
    daemon.stop()
    settings = daemon.home / ".config/brimline/config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("[stop]\nlast_level = true\n")
    daemon.start()
    scenario = Scenario(
        main=(bash("sleep 2"), Reply(text="I stop.")),
        otherwise=Reply(text="I see."),
        ramp=Ramp(start=120_000),
    )
    client = set_up(scenario, without="PostToolBatch")
    client.say("Go.")
    client.until(lambda: "I see." in client.text, "its turn has ended")
    assert "I stop." in requests_with(client, "[brimline] Your context is at ")[0]


def test_wake_types_a_message_for_an_idle_agent_and_no_other(
    daemon: Running, set_up: Callable[..., Interactive]
) -> None:
    """Its hook adds what else is queued; a working agent gets its message with the next prompt."""
    scenario = Scenario(main=(Reply(text="Done."),), otherwise=Reply(text="I see."))
    client = set_up(scenario)
    client.say("Go.")
    client.until(lambda: "Done." in client.text)
    client.until_composer("claude")
    (view,) = daemon.until("/v1/sessions", lambda found: len(found) == 1)
    session = view["session"]["id"]
    queued = daemon.command("send", session, "Mind the docs.")
    assert queued.stdout == f"queued for {session}: delivered with the next prompt\n"
    client.type("half a thou")
    client.until_composer("claude", "typed")
    told = daemon.command("send", session, "Mind the tests.", "--wake")
    assert told.stdout == (
        "not typed: there is text in the composer\n"
        f"queued for {session}: delivered with the next prompt\n"
    )
    client.press("-N", "11", "BSpace")
    client.until_composer("claude")
    told = daemon.command("send", session, "Wake up.", "--wake")
    assert told.stdout == f"typed into the pane of {session}\n", told.stderr
    client.until(lambda: "I see." in client.text, "it does not answer")
    (first, *_) = requests_with(client, "Wake up.")
    texts = ("Wake up.", "Mind the docs.", "Mind the tests.")
    assert [first.count(f"[message from user] {text}") for text in texts] == [1, 1, 1]
    path = f"/v1/sessions/{session}/messages"
    found = daemon.until(path, lambda found: all(each["state"] == "delivered" for each in found))
    assert len(found) == 3


@pytest.mark.long
def test_wake_does_not_cancel_a_clear(daemon: Running, set_up: Callable[..., Interactive]) -> None:
    client = set_up(Scenario(main=(bash(hand_over("sleep 5")), Reply(text="I end."))))
    client.say("The first task.")
    client.until(lambda: load_requests(daemon.state), "there is no request")
    (request,) = load_requests(daemon.state)
    sent = daemon.command("send", request.session, "Wake up.", "--wake")
    assert sent.stdout.startswith("not typed: the session is being cleared\n"), sent.stderr
    client.until(lambda: load_requests(daemon.state)[0].step == "done", "it is not cleared")


def test_message_for_an_agent_without_hooks_is_typed_into_its_pane(
    daemon: TmuxDaemon, opened: Open
) -> None:
    home = daemon.folder.parent / "pi" / "home"
    home.parent.mkdir()
    home.symlink_to(daemon.home)
    client = opened("pi", Scenario(otherwise=Reply(text="I see.")))
    daemon.add_tmux(client.socket)
    client.say("Go.")
    (view,) = daemon.until("/v1/sessions", lambda found: len(found) == 1)
    done = daemon.command("send", view["session"]["id"], "Look at the tests.")
    assert done.returncode == 0, done.stderr
    client.until(lambda: requests_with(client, "Look at the tests."), "no request contains it")
    path = f"/v1/sessions/{view['session']['id']}/messages"
    (message,) = daemon.until(path, lambda found: found[0]["state"] == "delivered")
    assert message["text"] == "[message from user] Look at the tests."
    assert message["text"] in requests_with(client, "Look at the tests.")[0]
