#!/usr/bin/env python3
"""Slow clients, clients that leave, many requests, a stalled engine, SIGTERM: none may bring the server down.

    .venv/bin/python scripts/stress_server.py [--quick] [--only disconnects] [--heddle PROGRAM]

Starts the server on loopback and fails where pages stay in use, memory grows, /health is wrong,
or a stream is cut. Times are printed, and fail nothing: they count on a quiet machine alone.
`--quick` takes a few seconds, all of it some minutes.
"""

import argparse
import asyncio
import ctypes
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass
class Server:
    """A process that serves, and what it says of itself."""

    process: subprocess.Popen
    port: int
    log: list = field(default_factory=list)

    def memory(self) -> int:
        """Bytes that are resident."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    async def metrics(self) -> dict:
        lines = (await get(self, "/metrics")).body.decode().splitlines()
        return {
            k: float(v) for k, v in (line.split() for line in lines if line[0] != "#" and "{" not in line)
        }

    async def settled(self, seconds=60) -> dict:
        """Metrics when no answer runs or waits and no page is in use; fails where that does not come."""
        names = ("answers_running", "answers_waiting", "requests_answering", "kv_pages_used")
        for _ in range(seconds * 10):
            found = await self.metrics()
            if not any(found["heddle_" + name] for name in names):
                return found
            await asyncio.sleep(0.1)
        raise SystemExit(
            f"after {seconds} s without clients: { {name: found['heddle_' + name] for name in names} }"
        )


@asynccontextmanager
async def serving(options, *flags):
    command = [options.heddle, "serve"] if options.heddle else [sys.executable, "-m", "heddle.serve"]
    command += [options.model, "--port", "0", "--log", "none", *flags]
    if options.quick:
        command += ["--threads", "1"]  # others may use this machine
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        started = next((line for line in process.stderr if " at http://" in line), None)
        check(started, "the server did not start")
        yield Server(process, int(started.split(" at ")[1].split()[0].rstrip("/").rsplit(":", 1)[1]))
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@dataclass
class Response:
    status: int
    body: bytes


def check(right, message):
    if not right:
        raise SystemExit("stress_server: " + message)


def request(path, body=None, more="") -> bytes:
    data = b"" if body is None else json.dumps(body).encode()
    verb = "GET" if body is None else "POST"
    return (
        f"{verb} {path} HTTP/1.1\r\nHost: localhost\r\n{more}Content-Length: {len(data)}\r\n\r\n".encode()
        + data
    )


def story(tokens, stream=True) -> bytes:
    prompt = f"Once upon a time {random.randrange(1000)}"
    return request(
        "/v1/completions",
        {"prompt": prompt, "max_tokens": tokens, "stream": stream, "ignore_eos": True, "temperature": 1},
    )


async def response(reader) -> Response:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.split("content-length: ")[1].split()[0])
    return Response(int(head.split()[1]), await reader.readexactly(length))


async def get(server, path) -> Response:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request(path, more="Connection: close\r\n"))
    made = await asyncio.wait_for(response(reader), 60)
    writer.close()
    return made


async def stream(server, tokens) -> list[float]:
    """Seconds between the events of an answer, which has to come whole."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(story(tokens))
    gaps, last, ended = [], None, False
    while not ended:
        line = await asyncio.wait_for(reader.readline(), 120)
        check(line, "a stream was cut")
        ended = b"[DONE]" in line
        if line.startswith(b"data:"):
            now = time.perf_counter()
            gaps += [now - last] if last else []
            last = now
    writer.close()
    return gaps


def p99(gaps) -> float:
    return statistics.quantiles(gaps, n=100)[98] * 1e3


async def slow_client(server, kind, stop):
    """Reads a byte a second, or nothing, or says that it sends no more; or sends a byte a second."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    try:
        await loop.sock_connect(sock, ("127.0.0.1", server.port))
        if kind != "slow header":
            await loop.sock_sendall(sock, story(50))
        if kind == "half-closer":
            sock.shutdown(socket.SHUT_WR)
        head = iter(request("/v1/models", more="X-Slow: " + "x" * 400 + "\r\n"))
        while not stop.is_set():
            if kind == "slow header":
                await loop.sock_sendall(sock, bytes([next(head)]))
            elif kind != "never-reader" and not await asyncio.wait_for(loop.sock_recv(sock, 1), 60):
                break
            await asyncio.sleep(1)
    except (OSError, StopIteration, TimeoutError):
        pass  # the server has closed
    finally:
        sock.close()


async def slow_clients(options):
    async with serving(options) as server:
        rounds = 2 if options.quick else 30
        await stream(server, 300)

        async def normal():
            return [gap for _ in range(rounds) for gap in await stream(server, 300)]

        alone = [await normal()]
        stop = asyncio.Event()
        kinds = ("byte a second", "never-reader", "half-closer", "slow header")
        slow = [
            asyncio.create_task(slow_client(server, kinds[i % 4], stop))
            for i in range(60 if options.quick else 1000)
        ]
        await asyncio.sleep(0.5)
        burst = await stream(server, 300)  # while their answers are made
        while (await server.metrics())["heddle_answers_running"] > 0:
            await asyncio.sleep(0.1)
        beside = await normal()
        connections = (await server.metrics())["heddle_connections"]
        stop.set()
        await asyncio.gather(*slow)
        await server.settled()
        alone.append(await normal())
        print(
            f"{len(slow)} slow clients, {connections:.0f} connected at the end: p99 between tokens of a "
            f"normal one {p99(beside):.2f} ms, alone before "
            f"and after {p99(alone[0]):.2f} and {p99(alone[1]):.2f} ms, "
            f"while their answers are made {p99(burst):.2f} ms",
            flush=True,
        )


async def workers(count, at_once, work):
    left = iter(range(count))

    async def one():
        for i in left:
            await work(i)

    await asyncio.gather(*(one() for _ in range(at_once)))


async def disconnects(options):
    """Clients that leave at any point of a request or an answer, with and without a word."""
    count = 200 if options.quick else 10000
    async with serving(options, "--sequences", "8") as server:

        async def leave(i):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            asked = story(300, stream=i % 3 > 0)
            writer.write(asked[: random.randrange(len(asked))] if i % 7 == 0 else asked)
            if i % 5 > 0:
                for _ in range(i % 4):
                    with suppress(TimeoutError, OSError):
                        await asyncio.wait_for(reader.read(200), 0.02)
            if i % 2:
                sock = writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # a reset
            writer.close()

        start = time.perf_counter()
        await workers(count, 32, leave)
        found = await server.settled()
        check(
            found["heddle_requests_left_total"] > count / 4,
            f"{found['heddle_requests_left_total']} were seen to leave",
        )
        print(
            f"{count} disconnects in {time.perf_counter() - start:.0f} s: "
            f"{found['heddle_requests_left_total']:.0f} left during an answer, "
            f"{found['heddle_kv_pages_used']:.0f} pages in use, "
            f"{found['heddle_answer_tokens_total']:.0f} tokens of those that did not",
            flush=True,
        )


async def short_requests(options):
    count = 400 if options.quick else 20000
    async with serving(options) as server:
        asked = [
            request("/v1/completions", {"prompt": f"{a} + {a % 7} =", "max_tokens": 1 + a % 3})
            for a in range(100)
        ]

        async def client(first, last):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            for i in range(first, last):
                writer.write(asked[i % 100])
                check((await response(reader)).status == 200, "a short request failed")
            writer.close()

        async def ask(requests):
            each = requests // 8
            await asyncio.gather(*(client(i * each, (i + 1) * each) for i in range(8)))

        await ask(count // 4)
        before = server.memory()
        start = time.perf_counter()
        await ask(count - count // 4)
        rate, growth = (count - count // 4) / (time.perf_counter() - start), server.memory() / before - 1
        await server.settled()
        print(
            f"{count} short requests, {rate:.0f} a second: memory "
            f"{before / 2**20:.1f} MB after a quarter, {growth:+.2%} since",
            flush=True,
        )
        check(options.quick or growth < 0.01, "memory grows")


PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207


def ptrace(request, thread):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    return libc.ptrace(request, thread, None, None) == 0


async def stalled_engine(options):
    """Stops the threads that compute, and no others: those that are busiest while an answer is made."""
    async with serving(options, "--step-limit", "1") as server:
        tasks = Path(f"/proc/{server.process.pid}/task")

        def busy():
            return {
                int(t.name): sum(map(int, (t / "stat").read_text().rsplit(")", 1)[1].split()[11:13]))
                for t in tasks.iterdir()
            }

        running = asyncio.gather(*(stream(server, 700) for _ in range(16)))
        await asyncio.sleep(0.05)
        before = busy()
        await asyncio.sleep(0.1)
        while not running.done():
            after = busy()
            thread = max(after, key=lambda t: after[t] - before.get(t, 0))
            if after[thread] > before.get(thread, 0):
                break
            await asyncio.sleep(0.02)
        check(not running.done(), "the answer ended before its thread was found")
        if not (ptrace(PTRACE_SEIZE, thread) and ptrace(PTRACE_INTERRUPT, thread)):
            print(
                f"a stalled engine: not tried, ptrace is not allowed here ({os.strerror(ctypes.get_errno())})"
            )
            return await running
        start, status = time.perf_counter(), 200
        while status == 200 and time.perf_counter() - start < 30:
            await asyncio.sleep(0.1)
            status = (await get(server, "/health")).status
        took = time.perf_counter() - start
        ready, metrics = (await get(server, "/ready")).status, await get(server, "/metrics")
        os.waitpid(thread, 0x40000000)  # __WALL: it has stopped, and may go on
        check(ptrace(PTRACE_DETACH, thread), "the thread could not go on")
        check(
            (status, ready, metrics.status) == (503, 503, 200),
            f"{status} {ready} {metrics.status} while nothing moved",
        )
        await running
        await server.settled()
        check((await get(server, "/health")).status == 200, "/health stays 503 when steps go on")
        print(
            f"engine stopped: /health says 503 after {took:.1f} s (limit 1 s), /metrics answers; it goes on",
            flush=True,
        )


async def termination(options):
    async with serving(options, "--sequences", "16") as server:
        streams = [asyncio.create_task(stream(server, 300)) for _ in range(24)]
        while (await server.metrics())["heddle_answers_running"] < 16:
            check(not all(s.done() for s in streams), "the answers ended too soon")
            await asyncio.sleep(0.005)
        server.process.send_signal(signal.SIGTERM)
        await asyncio.gather(*streams)
        code = await asyncio.to_thread(server.process.wait, 60)
        check(code == 0, f"exit code {code} after SIGTERM")
        print(f"SIGTERM during {len(streams)} streams: all came whole, exit code {code}", flush=True)


def main():
    parts = (slow_clients, disconnects, short_requests, stalled_engine, termination)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a few of each")
    parser.add_argument("--heddle", default="", help="the program; default: python -m heddle.serve")
    parser.add_argument("--model", default=str(ROOT / "models" / "storyteller"))
    parser.add_argument("--only", choices=[part.__name__ for part in parts], action="append")
    options = parser.parse_args()
    random.seed(1)
    for part in parts:
        if not options.only or part.__name__ in options.only:
            asyncio.run(part(options))


if __name__ == "__main__":
    main()
