"""opencode with our plugin and a real daemon: how it differs from the other clients."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from brimline.context.window import REPORTED
from brimline.testing.fake_model import Ramp, Reply, Scenario

from .monitored import Opencode
from .monitored.fixtures import client_fixture, retry_slow_hooks
from .monitored.script import brimline
from .opencode import API_KEY, CHATGPT_PLAN, MODEL_URL, write_openai_login
from .run import Place

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = client_fixture(Opencode)


@retry_slow_hooks
def test_message_waits_for_the_next_prompt(agent: Opencode) -> None:
    """A plugin cannot keep a turn from ending: a message comes with the next prompt."""
    send = agent.shell(f'{brimline("send")} {agent.session_word} "Look at the tests."')
    first = agent.run(agent.steps(0, Ramp(), send))
    assert [str(agent.user_texts(body)).count("Look at") for body in agent.requests(first)] == [
        0,
        0,
    ]
    second = agent.run(agent.steps(1, Ramp()))
    assert [str(agent.user_texts(body)).count("Look at") for body in agent.requests(second)] == [
        1,
        1,
    ]


@retry_slow_hooks
@pytest.mark.parametrize(
    ("login", "model", "window", "limit"),
    [
        pytest.param(CHATGPT_PLAN, "gpt-5.6-sol", 272_000, 252_000, id="plan"),
        pytest.param(API_KEY, "gpt-5.6-sol", 1_050_000, 902_000, id="api-key"),
    ],
)
def test_window_of_openai_depends_on_the_login(
    agent: Opencode, login: Mapping[str, object], model: str, window: int, limit: int
) -> None:
    """The plugin reports the prompt limit of a ChatGPT plan, and window and prompt of the API."""
    write_openai_login(Place(agent.folder), login)
    scenario = Scenario(main=(Reply(text="Done."),))
    run = agent.run(scenario, "-m", f"openai/{model}", **{MODEL_URL: "{base_url}/v1"})
    assert [billed.model for billed in run.of("main")] == [model]
    (thread,) = agent.daemon.get(f"/v1/sessions/{agent.session_of(run)}")["threads"]
    assert (thread["window"], thread["window_why"]) == (window, REPORTED)
    assert thread["limit"] == limit


@retry_slow_hooks
def test_limit_leaves_room_for_the_longest_reply(agent: Opencode) -> None:
    """Of 200,000 tokens with replies of up to 8,192, opencode fills 191,808."""
    ramp = Ramp(start=176_000, step=1_500, after_compaction=20_000)
    run = agent.run(agent.steps(12, ramp))
    view = agent.daemon.get(f"/v1/sessions/{agent.session_of(run)}")
    timeline = agent.daemon.get(f"/v1/sessions/{agent.session_of(run)}/timeline")
    assert view["threads"][0]["limit"] == 191_808
    (compaction,) = timeline["compactions"]
    assert 191_808 <= compaction["before"] < 191_808 + 1_600
