"""Both ways to pick lines, for every test that asks for a picker."""

import pytest

from brimline.sources.pick import Picker, PythonPicker


@pytest.fixture(scope="session", params=["python", "compiled"])
def picker(request: pytest.FixtureRequest) -> type[Picker]:
    """Each picker."""
    return PythonPicker if request.param == "python" else request.getfixturevalue("compiled")
