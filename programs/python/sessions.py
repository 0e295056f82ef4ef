"""Reads an access log, groups requests into sessions, ranks pages by how they follow each other, and renders a report.

Run with PYTHONMALLOC=malloc every object of the interpreter is a block of malloc. Prints integers and names only.
"""

import heapq
import re
import sys
from collections import Counter, defaultdict

LINE = re.compile(r'(\S+) - - \[(\d+)/Mar/2026:(\d+):(\d+):(\d+) \+0000\] "(\w+) (\S+) HTTP/1\.1" (\d+) (\d+) "([^"]*)" "([^"]*)"')
GAP = 1800


class Request:
    def __init__(self, match):
        client, day, hour, minute, second, method, target, status, size, referer, agent = match.groups()
        self.client = client
        self.time = ((int(day) * 24 + int(hour)) * 60 + int(minute)) * 60 + int(second)
        self.method = method
        self.path, _, query = target.partition("?")
        self.query = dict(pair.split("=", 1) for pair in query.split("&")) if query else {}
        self.status = int(status)
        self.size = int(size)
        self.referer = referer
        self.agent = agent


def sessions(requests):
    """Splits each client's requests where there is a gap of half an hour."""
    by_client = defaultdict(list)
    for request in requests:
        by_client[request.client].append(request)
    for client in sorted(by_client):
        current = []
        for request in by_client[client]:
            if current and request.time - current[-1].time > GAP:
                yield current
                current = []
            current.append(request)
        yield current


def ranks(follows, rounds):
    """The pages' ranks by which page follows which, in integers so that every machine prints the same."""
    rank = {page: 1_000_000_000 for page in follows}
    for _ in range(rounds):
        fresh = {page: 150_000_000 for page in follows}
        for page, nexts in follows.items():
            total = sum(nexts.values())
            for following, count in nexts.items():
                if following in fresh:
                    fresh[following] += rank[page] * count * 85 // (total * 100)
        rank = fresh
    return rank


def main(path, rounds):
    with open(path, encoding="ascii") as log:
        requests = [Request(match) for match in map(LINE.match, log) if match]
    follows = defaultdict(Counter)
    shapes = Counter()
    for session in sessions(requests):
        shapes[tuple(request.path for request in session[:3])] += 1
        for first, second in zip(session, session[1:]):
            follows[first.path][second.path] += 1
    queries = Counter(item for request in requests for item in request.query.items())
    print(len(requests), len(follows), len(shapes), len(queries))
    rank = ranks(follows, rounds)
    for page in heapq.nsmallest(10, rank, key=lambda page: (-rank[page], page)):
        print(page, rank[page], sum(follows[page].values()))
    rows = []
    for request in sorted(requests, key=lambda request: (request.path, request.time, request.client, request.size)):
        rows.append(f"<tr><td>{request.path}</td><td>{request.time:09d}</td><td>{request.status}</td></tr>")
    text = "\n".join(rows)
    total = 0
    for position in range(0, len(text), 61):
        total = (total * 31 + ord(text[position])) % 1_000_000_007
    print(len(text), total)


main(sys.argv[1], int(sys.argv[2]))
