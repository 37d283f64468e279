"""A model API on loopback for real clients, with a log of what it billed.

>>> scenario = Scenario(main=(Reply(text="Hello."),))
>>> with FakeModel(scenario) as model:
...     print(model.base_url.rpartition(":")[0], model.billed)
http://127.0.0.1 ()
"""

from .billed import Billed, Refused, Usage, read_billed, read_records
from .scenario import (
    CAPTURED,
    Compaction,
    Edit,
    Pass,
    Ramp,
    Reply,
    Scenario,
    ToolCall,
    load,
    save,
)
from .server import FakeModel

__all__ = [
    "CAPTURED",
    "Billed",
    "Compaction",
    "Edit",
    "FakeModel",
    "Pass",
    "Ramp",
    "Refused",
    "Reply",
    "Scenario",
    "ToolCall",
    "Usage",
    "load",
    "read_billed",
    "read_records",
    "save",
]
