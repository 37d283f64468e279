"""Commands are classified: checks, reads, and those with a meaningful exit code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.handoff.commands import ShellCommand


@pytest.mark.parametrize(
    "text",
    [
        "pytest -q",
        "cd x && PYTHONPATH=. python -m pytest tests | tail -3",
        "uv run --no-sync pytest",
        "go test ./... 2>&1",
        "./gradlew test",
        "mise run test:ci",
        "npm run lint",
        "make check",
        "npx tsc --noEmit",
        ".venv/bin/ruff check src",
        "env CI=1 timeout 60 go test ./...",
    ],
)
def test_check_is_recognised(text: str) -> None:
    assert ShellCommand.parse(text).check


@pytest.mark.parametrize(
    "text",
    [
        "git commit -m 'make test pass'",
        "gh api repos/golangci/golangci-lint/releases",
        'gh pr create --body "$(cat <<\'EOF\'\nRan `make test`, "all" green.\nEOF\n)"',
        "cat pytest.ini",
        "gh pr checks 7",
        "rg pytest",
        "npm install",
        "echo make test",
        "chmod +x tasks/lint/go",
        "",
    ],
)
def test_other_command_is_no_check(text: str) -> None:
    assert not ShellCommand.parse(text).check


@pytest.mark.parametrize(
    ("text", "check", "wide"),
    [
        ("pytest -q", "pytest", True),
        ("uv run pytest tests/test_a.py", "pytest", False),
        ("pytest -k name", "pytest", False),
        ("go test ./... 2>&1 | tail", "go test", True),
        ("go test ./a", "go test", False),
        ("npm run test:ci -- --watch=false", "npm test:ci", True),
        ("make test-slow", "make test-slow", True),
        ("git log", "", False),
    ],
)
def test_check_of_everything_is_recognised(text: str, check: str, wide: bool) -> None:
    command = ShellCommand.parse(text)
    assert (command.check, command.checks_all) == (check, wide)


@pytest.mark.parametrize(
    "text",
    [
        'ls docs 2>/dev/null; echo "---"; printf x',
        "gh pr view 7 --json url",
        "git ls-remote --tags origin",
        "ls -la && cat x | head -3",
        'rg -n "a|b && rm" src; sed -n 1,3p x 2>/dev/null',
        "LC_ALL=C git -P log --oneline",
        "cd src && grep -c x y",
        "env",
    ],
)
def test_reading_command_is_read_only(text: str) -> None:
    assert ShellCommand.parse(text).is_read_only


@pytest.mark.parametrize(
    "text",
    [
        "echo x > notes.md",
        "gh pr comment 7 --body view",
        "gh",
        "cat a > b",
        "sed -i.bak s/a/b/ x",
        "find . -name x -delete",
        "cat <<EOF\nx\nEOF",
        "git push",
        "ls; rm x",
        "env A=1 ./run",
    ],
)
def test_writing_command_is_not_read_only(text: str) -> None:
    assert not ShellCommand.parse(text).is_read_only


@pytest.mark.parametrize(
    ("text", "is_own"),
    [
        ("pytest -q 2>&1", True),
        ("a && b || exit 1", True),
        ("pytest | tail", False),
        ("set -o pipefail; pytest | tail", True),
        ("pytest || true", False),
        ("pytest; echo done", False),
        ("server &", False),
        ('rg "a|b"', True),
    ],
)
def test_own_exit_code_is_recognised(text: str, is_own: bool) -> None:
    """The exit code of a pipe is that of its last program."""
    assert ShellCommand.parse(text).has_own_exit_code is is_own


def test_piping_the_output_does_not_make_another_command() -> None:
    cores = {
        ShellCommand.parse(text).core
        for text in ("make  check", "make check 2>&1 | tail -3", "make check 2>/dev/null")
    }
    assert cores == {"make check"}
    assert ShellCommand.parse('rg "a|b" x').core == 'rg "a|b" x'


@given(st.text("ab '\"|&;<>\n-=EOF\\$("))
def test_any_text_is_classified(text: str) -> None:
    assert ShellCommand.parse(text).text == text
