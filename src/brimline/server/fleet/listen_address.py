"""Where a replica listens, and what keeps others from reading its tokens on the way."""

import socket
import ssl

import msgspec

from brimline.daemon.sockets import BACKLOG
from brimline.errors import InvalidSettings
from brimline.files.loopback import is_loopback


class ListenAddress(msgspec.Struct, frozen=True):
    """A host and a port; `is_behind_proxy` if a proxy in front of them speaks TLS."""

    host: str
    port: int
    certificate: str | None = None
    key: str | None = None
    is_behind_proxy: bool = False

    def check(self) -> None:
        """Raise InvalidSettings if tokens could be read on the way, or a file of TLS is wrong."""
        if (self.certificate is None) != (self.key is None):
            missing = "--tls-cert" if self.certificate is None else "--tls-key"
            raise InvalidSettings("argument", missing, "pass both --tls-cert and --tls-key")
        if self.certificate is not None and self.key is not None:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
            except OSError as error:  # also ssl.SSLError
                problem = f"cannot load {self.certificate} with {self.key}: {error}"
                raise InvalidSettings("argument", "--tls-cert", problem) from error
        elif not self.is_behind_proxy and not is_loopback(self.host):
            problem = (
                f"{self.host} is reachable by others, who could read tokens: pass --tls-cert and "
                "--tls-key, or --behind-proxy if a proxy in front of it speaks TLS"
            )
            raise InvalidSettings("argument", "--listen", problem)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it by TLS."""
        return self.certificate is not None or self.is_behind_proxy

    def listen(self) -> socket.socket:
        """Return a socket that listens there; raises InvalidSettings."""
        listening: socket.socket | None = None
        try:
            family, kind, protocol, _, name = socket.getaddrinfo(
                self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            listening = socket.socket(family, kind, protocol)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(name)
            listening.listen(BACKLOG)
        except OSError as error:
            if listening is not None:
                listening.close()
            problem = f"cannot listen on {self.host}:{self.port}: {error.strerror}"
            raise InvalidSettings("argument", "--listen", problem) from error
        return listening
