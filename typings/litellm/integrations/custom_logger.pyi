"""What `brimline.integrations.litellm` uses: the package is not in our environment."""

class CustomLogger:
    def __init__(self) -> None: ...
