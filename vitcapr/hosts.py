"""Whether an HTTP request is meant for this machine."""

import ipaddress
import socket
from urllib.parse import urlsplit


def names_this_machine(host: str, *own: str) -> bool:
    """Whether a Host header is an address or a name of this machine.

    The name of another site may lead here (DNS rebinding), so that its pages could read the answers.

    Args:
        own: more names of this machine, in lower case.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in ("localhost", socket.gethostname().lower(), *own)
    return True
