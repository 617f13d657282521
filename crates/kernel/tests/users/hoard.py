"""Opens MPTCP connections in network namespaces of an unprivileged user's making.

    hoard.py HOW CONTROL USER NAMESPACES

HOW is `own`: each namespace is made by the user himself; `rooted`: by root, who maps the user to its
root; or `subuids`: by turns in a user namespace where he is root, but the socket is another of his
uids', and by such another uid as the root of a nested one. The line `ready` says that all are open;
they end with standard input.
"""

import ctypes
import fcntl
import os
import socket
import struct
import sys

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
IPPROTO_MPTCP = 262
SUBUIDS, SUBUID_COUNT = 3_000_000, 65536

libc = ctypes.CDLL(None, use_errno=True)


def unshare(what: int) -> None:
    if libc.unshare(what):
        raise OSError(ctypes.get_errno(), "unshare")


def loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH22x", b"lo", IFF_UP)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)


def connect(control: bytes) -> list[socket.socket]:
    both = [socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP) for _ in range(2)]
    for one in both:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control)
    listener, client = both
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    client.connect(listener.getsockname())
    server, _ = listener.accept()
    for one, other in [(client, server), (server, client)]:
        one.sendall(b"?")
        other.recv(1)
    return [listener, client, server]


def become(user: int) -> None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def mapped(user: int, maker: int) -> None:
    """Enters a user namespace of the maker's where the user is root and has more uids, which root grants."""
    made, granted = os.pipe(), os.pipe()
    if not (child := os.fork()):
        become(maker)
        unshare(CLONE_NEWUSER)
        os.write(made[1], b"!")
        os.read(granted[0], 1)
        return
    os.read(made[0], 1)
    with open(f"/proc/{child}/uid_map", "w") as uid_map:
        uid_map.write(f"0 {user} 1\n1 {SUBUIDS} {SUBUID_COUNT}")
    with open(f"/proc/{child}/gid_map", "w") as gid_map:
        gid_map.write(f"0 {user} 1")
    os.write(granted[1], b"!")
    os.waitpid(child, 0)
    os._exit(0)


def hoard(how: str, control: bytes, user: int, n: int) -> list[socket.socket]:
    if how == "own":
        become(user)
        unshare(CLONE_NEWUSER | CLONE_NEWNET)
        loopback_up()
    elif how == "rooted":
        mapped(user, 0)
        os.setresuid(0, 0, 0)
        unshare(CLONE_NEWNET)
        loopback_up()
    else:
        mapped(user, user)
        if n % 2:
            unshare(CLONE_NEWNET)
            loopback_up()
            os.setresuid(1 + n, 1 + n, 1 + n)
        else:
            os.setresuid(1 + n, 1 + n, 1 + n)
            unshare(CLONE_NEWUSER | CLONE_NEWNET)
            loopback_up()
    return connect(control)


def main() -> None:
    how, control, user, namespaces = sys.argv[1:]
    ready, end = os.pipe(), os.pipe()
    for n in range(int(namespaces)):
        if os.fork():
            continue
        os.close(end[1])
        _open = hoard(how, control.encode(), int(user), n)
        os.write(ready[1], b"!")
        os.close(ready[1])
        os.read(end[0], 1)
        os._exit(0)
    os.close(ready[1])
    for _ in range(int(namespaces)):
        if not os.read(ready[0], 1):
            sys.exit("a namespace without a connection")
    print("ready", flush=True)
    sys.stdin.read()


main()
