"""How the uplink is doing."""

import msgspec


class UplinkStatus(msgspec.Struct, frozen=True):
    """The state of the uplink: `behind` sessions have changes that the server does not have.

    `lag_s` is how long the server has been behind, 0 if it has everything. `problem` is why the
    last batch was not taken. `receive` is what this machine accepts from the server; it has refused
    `refused` messages and documents, the last of them because of `refusal`. The counts are since
    the daemon's start.
    """

    url: str
    behind: int = 0
    lag_s: float = 0.0
    last_success_at: float | None = None
    problem: str | None = None
    batches: int = 0
    failures: int = 0
    calls: int = 0
    sent_bytes: int = 0
    received: int = 0
    receive: str = "off"
    refused: int = 0
    refusal: str | None = None
