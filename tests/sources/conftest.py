"""Both ways to pick lines, for every test that asks for a picker."""

import os

import pytest

from brimline.sources.pick import CompiledPicker, Picker, PythonPicker


@pytest.fixture(scope="session")
def compiled() -> type[Picker]:
    """The compiled picker; where there is none, a test is skipped, or fails under CI=true."""
    if CompiledPicker.library is None:
        missing = "the compiled picker is not there: `make setup` with a C compiler makes it"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return CompiledPicker


@pytest.fixture(scope="session", params=["python", "compiled"])
def picker(request: pytest.FixtureRequest) -> type[Picker]:
    """Each picker."""
    return PythonPicker if request.param == "python" else request.getfixturevalue("compiled")
