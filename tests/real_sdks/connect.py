"""The clients of the SDKs, connected with a fake; each SDK is imported when it is needed."""

from __future__ import annotations

from typing import Any

from brimline.testing.fake_model import FakeModel

CLAUDE, CLAUDE_WINDOW = "claude-opus-5-5", 1_000_000
GPT, GPT_WINDOW = "gpt-6-astra", 1_050_000
GEMINI, GEMINI_WINDOW = "gemini-3.8-flash", 1_048_576

KEY = "dummy"


def anthropic(fake: FakeModel) -> Any:
    """A client of the `anthropic` package."""
    from anthropic import Anthropic

    return Anthropic(base_url=fake.base_url, api_key=KEY, max_retries=0)


def anthropic_async(fake: FakeModel) -> Any:
    """Its asynchronous one."""
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(base_url=fake.base_url, api_key=KEY, max_retries=0)


def openai(fake: FakeModel) -> Any:
    """A client of the `openai` package."""
    from openai import OpenAI

    return OpenAI(base_url=f"{fake.base_url}/v1", api_key=KEY, max_retries=0)


def openai_async(fake: FakeModel) -> Any:
    """Its asynchronous one."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(base_url=f"{fake.base_url}/v1", api_key=KEY, max_retries=0)


def google(fake: FakeModel) -> Any:
    """A client of the `google-genai` package, for both; it closes when it is collected."""
    from google import genai
    from google.genai import types

    return genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=fake.base_url))
