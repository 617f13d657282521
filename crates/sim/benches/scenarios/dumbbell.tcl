# The dumbbell of the benchmark in ns-2: ns dumbbell.tcl FLOWS MBITS ACCESS_MBITS QUEUE SECONDS
# Prints the data packets acknowledged and the wall seconds of the run.
lassign $argv flows mbits access queue seconds

# The quickest that ns-2 can be: a heap of events, and of the headers only those in use.
set ns [new Simulator]
$ns use-scheduler Heap
remove-all-packet-headers
add-packet-header IP TCP

proc cable {a b mbits delay queue} {
    global ns
    $ns duplex-link $a $b ${mbits}Mb $delay DropTail
    $ns queue-limit $a $b $queue
    $ns queue-limit $b $a 1000000
}

# ns-2 counts the packet in transmission as one of the queue.
set left [$ns node]
set right [$ns node]
cable $left $right $mbits 8ms [expr {$queue + 1}]

for {set n 0} {$n < $flows} {incr n} {
    set from [$ns node]
    set to [$ns node]
    cable $from $left $access 1ms 1000000
    cable $right $to $access 1ms 1000000
    # Selective and delayed acknowledgements, as the hosts of today.
    set sender($n) [new Agent/TCP/Sack1]
    $sender($n) set packetSize_ 1448
    $sender($n) set window_ 100000
    $sender($n) set windowInit_ 10
    $sender($n) set minrto_ 0.2
    set receiver [new Agent/TCPSink/Sack1/DelAck]
    $ns attach-agent $from $sender($n)
    $ns attach-agent $to $receiver
    $ns connect $sender($n) $receiver
    set application [new Application/FTP]
    $application attach-agent $sender($n)
    $ns at [expr {0.01 * $n}] "$application start"
}

proc finish {} {
    global sender flows start
    set wall [expr {([clock microseconds] - $start) / 1e6}]
    set packets 0
    for {set n 0} {$n < $flows} {incr n} {
        incr packets [$sender($n) set ack_]
    }
    puts "$packets $wall"
    exit 0
}

$ns at $seconds finish
set start [clock microseconds]
$ns run
