# Scenarios A and B of the benchmark in ns-2: `ns dumbbell_ns2.tcl NAME FLOWS MBIT ACCESS_MBIT FROM TO SINK`.
# SINK is Sack1/DelAck (acknowledges every second packet) or Sack1 (every packet). Prints
#   peers: NAME, ns-2, goodput in Mbit/s, Jain's index, loss in %
# of the time from FROM to TO seconds.
#
# Differs from ours: windows grow by acknowledgements, not by acknowledged packets, so that b = 2
# with delayed ACKs, whose timer is 100 ms; loss recovery is older than RACK and PRR.
lassign $argv name flows mbit access from to sink
set ns [new Simulator]
$ns use-scheduler Heap
remove-all-packet-headers
add-packet-header IP TCP
Agent/TCP set window_ 100000
Agent/TCP set windowInit_ 10
# And 40 of headers: 1500 on the wire, of which ours and we here count 1448 as payload.
Agent/TCP set packetSize_ 1460
Agent/TCP set minrto_ 0.2
# What a real host's clock and scheduling do: a random delay of up to 4 packet times per send.
Agent/TCP set overhead_ [expr 4 * 1500 * 8 / ($mbit * 1e6)]
$defaultRNG seed 1

set left [$ns node]
set right [$ns node]
set endless 1000000
$ns duplex-link $left $right ${mbit}Mb 8ms DropTail
# One bandwidth-delay product; ns-2 counts the packet in transmission too.
$ns queue-limit $left $right [expr int($mbit * 1e6 / 8 * 0.02 / 1502) + 1]
$ns queue-limit $right $left $endless
set queue [$ns monitor-queue $left $right ""]
for {set i 0} {$i < $flows} {incr i} {
	set source [$ns node]
	set target [$ns node]
	foreach {a b} [list $source $left $right $target] {
		$ns duplex-link $a $b ${access}Mb 1ms DropTail
		$ns queue-limit $a $b $endless
		$ns queue-limit $b $a $endless
	}
	set tcp($i) [new Agent/TCP/Sack1]
	set receiver [new Agent/TCPSink/$sink]
	$ns attach-agent $source $tcp($i)
	$ns attach-agent $target $receiver
	$ns connect $tcp($i) $receiver
	set ftp [new Application/FTP]
	$ftp attach-agent $tcp($i)
	$ns at [expr 0.01 * $i] "$ftp start"
}

proc begin {} {
	global flows tcp before queue drops departures
	for {set i 0} {$i < $flows} {incr i} { set before($i) [$tcp($i) set ack_] }
	set drops [$queue set pdrops_]
	set departures [$queue set pdepartures_]
}

proc end {} {
	global name flows tcp before queue drops departures from to sink
	set sum 0.0
	set squares 0.0
	for {set i 0} {$i < $flows} {incr i} {
		set packets [expr double([$tcp($i) set ack_] - $before($i))]
		set sum [expr $sum + $packets]
		set squares [expr $squares + $packets * $packets]
	}
	set drops [expr [$queue set pdrops_] - $drops]
	set departures [expr [$queue set pdepartures_] - $departures]
	puts [format "peers: %s, ns-2 %s, %.2f, %.4f, %.3f" $name $sink \
		[expr $sum * 1448 * 8 / ($to - $from) / 1e6] [expr $sum * $sum / $flows / $squares] \
		[expr 100.0 * $drops / ($drops + $departures)]]
	exit 0
}
$ns at $from begin
$ns at $to end
$ns run
