"""Scenarios A and B of the benchmark in ns-3 (`pip install ns3`):

    dumbbell_ns3.py NAME FLOWS MBIT ACCESS_MBIT FROM TO

prints `peers: NAME, ns-3, goodput in Mbit/s, Jain's index, loss in %` of the time from FROM to TO
seconds, and in a line of their own the data packets delivered until TO and the wall seconds of it.
TcpLinuxReno counts acknowledged packets (b = 1); acknowledgements are delayed, two packets or 40 ms;
SACK, PRR and timestamps are on. Differs from ours: no RACK; timestamps of 1 ms; no jitter but in the
flows' starts; packets are 1502 bytes on the wire (PPP).
"""

import sys
import time

from ns import ns

name = sys.argv[1]
flows, mbit, access, start, end = (int(arg) for arg in sys.argv[2:])

PACKET = 1502
SEGMENT = 1448
buffer = int(mbit * 1e6 / 8 * 0.02 / PACKET)
ENDLESS = ns.StringValue("1000000p")


def default(attribute, value):
    ns.Config.SetDefault("ns3::" + attribute, value)


default("TcpL4Protocol::SocketType", ns.StringValue("ns3::TcpLinuxReno"))
default("TcpSocket::SegmentSize", ns.UintegerValue(SEGMENT))
default("TcpSocket::InitialCwnd", ns.UintegerValue(10))
default("TcpSocket::DelAckTimeout", ns.StringValue("40ms"))
default("TcpSocketBase::MinRto", ns.StringValue("200ms"))
for side in ("SndBufSize", "RcvBufSize"):
    default("TcpSocket::" + side, ns.UintegerValue(16 << 20))


def connect(a, b, rate, delay, queue):
    """A link with a droptail queue; without flow control ns-3 puts no FqCoDel above it."""
    helper = ns.PointToPointHelper()
    helper.DisableFlowControl()
    helper.SetDeviceAttribute("DataRate", ns.StringValue(f"{rate}Mbps"))
    helper.SetChannelAttribute("Delay", ns.StringValue(delay))
    helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", queue)
    devices = helper.Install(a, b)
    addresses.Assign(devices)
    addresses.NewNetwork()
    return devices


nodes = ns.NodeContainer()
nodes.Create(2 + 2 * flows)
ns.InternetStackHelper().Install(nodes)
left, right = nodes.Get(0), nodes.Get(1)
addresses = ns.Ipv4AddressHelper()
addresses.SetBase(ns.Ipv4Address("10.0.0.0"), ns.Ipv4Mask("255.255.255.0"))
narrow = connect(left, right, mbit, "8ms", ns.StringValue(f"{buffer}p"))
sinks = []
for n in range(flows):
    source, target = nodes.Get(2 + 2 * n), nodes.Get(3 + 2 * n)
    connect(source, left, access, "1ms", ENDLESS)
    connect(right, target, access, "1ms", ENDLESS)
    address = target.GetObject[ns.Ipv4]().GetAddress(1, 0).GetLocal()
    remote = ns.InetSocketAddress(address, 9).ConvertTo()
    bulk = ns.BulkSendHelper("ns3::TcpSocketFactory", remote)
    bulk.SetAttribute("MaxBytes", ns.UintegerValue(0))
    bulk.Install(source).Start(ns.MilliSeconds(10 * n))
    sink = ns.PacketSinkHelper("ns3::TcpSocketFactory", remote)
    sinks.append(sink.Install(target).Get(0).GetObject[ns.PacketSink]())
ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
queue = narrow.Get(0).GetObject[ns.PointToPointNetDevice]().GetQueue()


def counters():
    received = [sink.GetTotalRx() for sink in sinks]
    return received, queue.GetTotalDroppedPackets(), queue.GetTotalReceivedPackets()


def run(seconds):
    """Goes on for so long; returns the wall seconds of it."""
    ns.Simulator.Stop(ns.Seconds(seconds))
    began = time.perf_counter()
    ns.Simulator.Run()
    return time.perf_counter() - began


wall = run(start)
before, dropped, accepted = counters()
wall += run(end - start)
after, dropped_after, accepted_after = counters()
dropped, accepted = dropped_after - dropped, accepted_after - accepted
mbits = [(b - a) * 8 / 1e6 / (end - start) for a, b in zip(before, after, strict=True)]
jain = sum(mbits) ** 2 / flows / sum(x * x for x in mbits)
loss = 100 * dropped / (dropped + accepted)
print(f"peers: {name}, ns-3, {sum(mbits):.2f}, {jain:.4f}, {loss:.3f}")
print(f"{sum(after) // SEGMENT} {wall:.3f}")
