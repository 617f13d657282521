"""A server and a client with MPTCP sockets: `sockets.py serve` and `sockets.py get`."""

import hashlib
import random
import socket
import sys

ADDRESS = ("10.77.255.1", 8081)
DATA = random.Random(7).randbytes(15 << 20)


def mptcp() -> socket.socket:
    protocol = getattr(socket, "IPPROTO_MPTCP", 262)  # has its name since Python 3.10
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)


def serve() -> None:
    with mptcp() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(ADDRESS)
        listener.listen()
        connection, _ = listener.accept()
        with connection:
            connection.sendall(DATA)


def get() -> None:
    digest = hashlib.sha256()
    with mptcp() as connection:
        connection.connect(ADDRESS)
        while data := connection.recv(1 << 16):
            digest.update(data)
    if digest.digest() != hashlib.sha256(DATA).digest():
        sys.exit("the download is not what was served")


if sys.argv[1] == "serve":
    serve()
else:
    get()
