"""Whether a host is this machine."""


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is a loopback one."""
    from ipaddress import ip_address  # slow to import, and most commands do not need it

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
