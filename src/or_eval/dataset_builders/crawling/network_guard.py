"""No connection into a private network: addresses are looked at when a connection is made."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Any, Self

from twisted.internet.interfaces import IHostnameResolver, IResolutionReceiver
from zope.interface import implementer

from or_eval.dataset_builders.crawling.sources_file import Place

PRIVATE_PLACES = "OR_EVAL_PRIVATE_PLACES"
"""Setting with the hosts and ports that may lie in a private network."""

_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Tell whether an IP address is one of the public internet.

    Of an address that wraps one of IPv4, both must be.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        wrapped = [found.ipv4_mapped, found.sixtofour, *(found.teredo or ())]
        if found in _TRANSLATED:
            wrapped.append(ipaddress.IPv4Address(int(found) & 0xFFFF_FFFF))
        if found.ipv4_mapped is not None:
            return is_public(str(found.ipv4_mapped))
        if not all(is_public(str(one)) for one in wrapped if one is not None):
            return False
    return found.is_global and not found.is_multicast


@implementer(IHostnameResolver)
class GuardedResolver:
    """Resolves names for connections, and leaves out addresses in private networks.

    A connection goes to an address that was given here, so what a name was resolved to before,
    or is later, doesn't matter. Addresses that are written as such come here as well.
    """

    def __init__(self, reactor: Any, private: Iterable[Place]) -> None:
        self._reactor, self._private = reactor, frozenset(map(tuple, private))
        self._resolver = reactor.nameResolver

    @classmethod
    def from_crawler(cls, crawler: Any, reactor: Any) -> Self:
        """Make the resolver of a crawl, as Scrapy does."""
        return cls(reactor, crawler.settings[PRIVATE_PLACES])

    def install_on_reactor(self) -> None:
        """Put it where connections look for addresses."""
        self._reactor.installNameResolver(self)

    def resolveHostName(
        self,
        resolutionReceiver: Any,
        hostName: str,
        portNumber: int = 0,
        addressTypes: Sequence[type[Any]] | None = None,
        transportSemantics: str = "TCP",
    ) -> Any:
        """Resolve a name; see Twisted's `IHostnameResolver`."""
        allowed = (hostName, portNumber) in self._private
        receiver = resolutionReceiver if allowed else _PublicOnly(resolutionReceiver)
        return self._resolver.resolveHostName(
            receiver, hostName, portNumber, addressTypes, transportSemantics
        )


@implementer(IResolutionReceiver)
class _PublicOnly:
    """Hands public addresses on."""

    def __init__(self, receiver: Any) -> None:
        self._receiver = receiver

    def resolutionBegan(self, resolution: Any) -> None:
        self._receiver.resolutionBegan(resolution)

    def addressResolved(self, address: Any) -> None:
        if is_public(address.host):
            self._receiver.addressResolved(address)

    def resolutionComplete(self) -> None:
        self._receiver.resolutionComplete()
