"""Window and limit: how large a context window is, where its client compacts, how we know."""

from brimline.windows.resolve import (
    NO_OVERRIDES,
    REPORTED,
    UNTOLD,
    ClientSettings,
    Known,
    Limit,
    Overrides,
    Window,
    limit_of,
    window_of,
)
from brimline.windows.tables import (
    Catalogue,
    ClientLimit,
    Clients,
    ClientWindow,
    Model,
    Price,
    catalogue,
    clients,
    model_row,
    plain,
)

__all__ = [
    "NO_OVERRIDES",
    "REPORTED",
    "UNTOLD",
    "Catalogue",
    "ClientLimit",
    "ClientSettings",
    "ClientWindow",
    "Clients",
    "Known",
    "Limit",
    "Model",
    "Overrides",
    "Price",
    "Window",
    "catalogue",
    "clients",
    "limit_of",
    "model_row",
    "plain",
    "window_of",
]
