"""MPTCP connections of random length, one after the other: `short.py serve`, `short.py ask`.

The server sends as many bytes as it is asked for. Whoever is killed leaves the other one with what
came until then, which must be right; the end of `ask` is that it was not.
"""

import random
import socket
import sys
import threading
import time

ADDRESS = ("10.77.255.1", 7000)
DATA = random.Random(7).randbytes(2_000_000)


def mptcp() -> socket.socket:
    protocol = getattr(socket, "IPPROTO_MPTCP", 262)  # has its name since Python 3.10
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)


def answer(connection: socket.socket) -> None:
    connection.settimeout(10)
    try:
        with connection:
            connection.sendall(DATA[: int(connection.recv(8))])
    except (OSError, ValueError):
        pass


def serve() -> None:
    with mptcp() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(ADDRESS)
        listener.listen(128)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=answer, args=[connection], daemon=True).start()


def ask() -> None:
    while True:
        # As many short ones as long ones, in orders of magnitude.
        size = int(len(DATA) ** random.random())
        got = bytearray()
        try:
            with mptcp() as connection:
                connection.settimeout(10)
                connection.connect(ADDRESS)
                connection.sendall(b"%8d" % size)
                while data := connection.recv(1 << 16):
                    got += data
        except OSError:
            time.sleep(0.05)
        if got != DATA[: len(got)] or len(got) > size:
            sys.exit("what came is not what was sent")


if sys.argv[1] == "serve":
    serve()
else:
    ask()
