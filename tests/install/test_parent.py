"""The parent in Brimline's own settings: one line, and nothing else in the file."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.errors import InvalidSettings
from brimline.install.plan import Change, apply, plan_setup_file
from brimline.install.setup_file import check_session_id, parent_file

TEXT = "# mine\nlevels = [40, 60]\n\n[windows]\n'a' = 5_000 # five\n"


class Project:
    """A project with its own settings."""

    def __init__(self, root: Path, text: str | None) -> None:
        self.path, self._state = root / ".brimline.toml", root / "state"
        if text is not None:
            self.path.write_bytes(text.encode())

    def plan(self, session: str | None) -> Change:
        return plan_setup_file(parent_file(self.path, self._state, session), "changed")

    def set(self, session: str | None) -> Change:
        return apply(self.plan(session))

    @property
    def text(self) -> str:
        return self.path.read_bytes().decode()


@pytest.mark.parametrize("text", [TEXT, "", "\n", TEXT.replace("\n", "\r\n"), "levels = [1]"])
def test_removal_restores_file(tmp_path: Path, text: str) -> None:
    project = Project(tmp_path, text)
    project.set("0f-1")
    assert tomllib.loads(project.text) == {**tomllib.loads(text), "parent": "0f-1"}
    assert project.text.endswith(text)
    assert project.plan("0f-1").pending is False
    project.set(None)
    assert project.text == text
    assert [path.name for path in tmp_path.iterdir()] == ["state", ".brimline.toml"]


def test_new_file_is_removed_again(tmp_path: Path) -> None:
    project = Project(tmp_path, None)
    project.set("0f-1")
    assert project.text == 'parent = "0f-1"\n'
    project.set(None)
    assert not project.path.exists()
    assert project.plan(None).pending is False


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ('parent = "old" # comment', 'parent = "new" # comment'),
        ("'parent'='old'", "'parent'=\"new\""),
        ('parent = "a\\"b"', 'parent = "new"'),
    ],
)
def test_existing_parent_is_replaced_in_place_and_keeps_its_comment(
    tmp_path: Path, line: str, after: str
) -> None:
    project = Project(tmp_path, f"tone = 'neutral'\n{line}\n[windows]\nparent = 7\n")
    project.set("new")
    assert project.text == f"tone = 'neutral'\n{after}\n[windows]\nparent = 7\n"


def test_parent_in_multiline_string_is_kept(tmp_path: Path) -> None:
    inside = '[texts]\nwarning = """\nparent = "x"\n"""\n'
    project = Project(tmp_path, f'parent = "old"\n{inside}')
    project.set("new")
    assert project.text == f'parent = "new"\n{inside}'
    second = Project(tmp_path / "other", None)
    second.path.parent.mkdir()
    second.path.write_text(inside)
    second.set("new")
    assert second.text == f'parent = "new"\n{inside}'


def test_later_changes_of_others_are_kept(tmp_path: Path) -> None:
    project = Project(tmp_path, TEXT)
    project.set("one")
    project.path.write_text(f"{project.text}'b' = 6_000\n")
    project.set("two")
    project.set(None)
    assert project.text == f"{TEXT}'b' = 6_000\n"


@pytest.mark.parametrize(
    "text", ["parent = ", "a = 1\na = 2\n", "\ufeffa = 1\n", "parent = [1,\n]"]
)
def test_invalid_file_is_left_alone(tmp_path: Path, text: str) -> None:
    project = Project(tmp_path, text)
    change = project.set("new")
    assert str(project.path) in str(change.reason)
    assert project.text == text


@pytest.mark.parametrize("session", ["", " a", "a\n", "\x1b[0m"])
def test_bad_session_id_is_rejected(session: str) -> None:
    with pytest.raises(InvalidSettings, match="expected a session's id"):
        check_session_id(session)


@given(session=st.text(min_size=1).filter(lambda text: text.isprintable() and text.strip() == text))
def test_any_printable_id_is_kept(tmp_path_factory: pytest.TempPathFactory, session: str) -> None:
    project = Project(tmp_path_factory.mktemp("p"), TEXT)
    project.set(check_session_id(session))
    assert tomllib.loads(project.text)["parent"] == session
