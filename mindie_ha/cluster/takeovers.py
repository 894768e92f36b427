"""Reading a source as it is now, beside its watch, when we begin to lead.

A list without a version is answered by the store behind the API server, so it holds everything that a
predecessor wrote and was told of. Older than what the watch brought meanwhile is ignored, as always; what is
gone, the watch tells.
"""

from __future__ import annotations

from mindie_ha.cluster.client import Client
from mindie_ha.cluster.slim import Page
from mindie_ha.cluster.sources import Source
from mindie_ha.cluster.store import Store


async def catch_up(source: Source, *, client: Client, store: Store, page_size: int) -> None:
    """Bring the store up to now for one source. Raises ClusterError, InputError."""
    token = ""
    while True:
        body = await client.list_page(
            source.resource, source.selection, limit=page_size, continue_token=token
        )
        page = Page(body, source.model, kind=source.resource.kind)
        for item in page.objects:
            store.apply(item, from_watch=False)
        token = page.continue_token
        if not token:
            return


__all__ = ["catch_up"]
