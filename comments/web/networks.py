"""Which network a request comes from, for limits that a script must not get around.

What a client says of himself counts for nothing: on App Engine its own header names him, elsewhere
the peer of the connection, or, behind `PROXIES` proxies of ours, the address that the first of
those has seen.
"""

import flask

from comments import config, networks


def of_request(settings: config.Settings, request: flask.Request) -> str:
    """The network of whoever sent a request; one for all whose address is not known."""
    if settings.on_app_engine:
        return networks.of(request.headers.get("X-Appengine-User-IP", ""))
    # Proxies append what they have seen, so only the last of them are theirs.
    seen = ",".join(request.headers.getlist("X-Forwarded-For")).split(",")
    chain = [*(each.strip() for each in seen if each.strip()), request.remote_addr or ""]
    return networks.of(chain[max(0, len(chain) - 1 - settings.proxies)])
