"""The content of Kilo CLI's messages and streams: as opencode's."""

from brimline.agents.opencode.content import OpencodeContent


class KiloContent(OpencodeContent):
    """Reads messages with one or more of their parts, as an export has them."""

    client = "Kilo CLI"


CONTENT_READER = KiloContent
