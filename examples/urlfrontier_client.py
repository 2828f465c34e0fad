"""A client of `trapline serve urlfrontier`: python examples/urlfrontier_client.py 127.0.0.1:7071 https://example.org/

Needs trapline[urlfrontier]. Puts URLs, gets them, and says when to fetch each of them again: tomorrow.
"""

import sys
import time

import grpc

from trapline.urlfrontier.messages import DiscoveredURLItem, GetParams, KnownURLItem, Stub, URLInfo, URLItem

frontier = Stub(grpc.insecure_channel(sys.argv[1]))
found = [URLItem(ID=url, discovered=DiscoveredURLItem(info=URLInfo(url=url))) for url in sys.argv[2:]]
print({ack.ID: ack.status for ack in frontier.PutURLs(iter(found))})  # 0: stored, 1: known already
for info in frontier.GetURLs(GetParams(max_queues=10, max_urls_per_queue=5, delay_requestable=60)):
    print(info.key, info.url)  # fetch it here
    done = KnownURLItem(info=info, refetchable_from_date=int(time.time()) + 86_400)
    list(frontier.PutURLs(iter([URLItem(ID=info.url, known=done)])))
