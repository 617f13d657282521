//! Packets between hosts: where they arrive, when, and what of them.

mod support;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use narrows_emu::{Host, Quantiles};
use narrows_net::{LinkConfig, MILLISECOND, Nanos};
use support::{Alone, pair, v4, v6};

const PORT: u16 = 7;

fn udp(host: &Host, address: IpAddr, port: u16) -> UdpSocket {
    let socket = host.run(|| UdpSocket::bind(SocketAddr::new(address, port)));
    let socket = socket.expect("the host is there").expect("its address is");
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

/// What a datagram took to the right and back, each time.
fn round_trips(left: &UdpSocket, right: &UdpSocket, times: usize) -> Vec<Duration> {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..times {
                let (length, from) = right.recv_from(&mut [0; 100]).expect("a datagram");
                right.send_to(&[7; 100][..length], from).unwrap();
            }
        });
        let mut trips = Vec::new();
        for _ in 0..times {
            let began = Instant::now();
            left.send_to(&[7; 60], right.local_addr().unwrap()).unwrap();
            left.recv(&mut [0; 100]).expect("its echo");
            trips.push(began.elapsed());
            std::thread::sleep(Duration::from_millis(2));
        }
        trips
    })
}

#[test]
fn a_round_trip_takes_the_delays_of_the_links() {
    const DELAY: Nanos = 10 * MILLISECOND;
    let Some(_alone) = Alone::with("a_round_trip_takes_the_delays_of_the_links") else { return };
    let link = LinkConfig { delay: DELAY, ..LinkConfig::default() };
    let (testbed, wire) = pair(link.clone(), link);
    let [left, right] = ["left", "right"].map(|name| testbed.host(name).unwrap());
    for address in [v4, v6] {
        let left = udp(left, address(1, 1), PORT);
        let right = udp(right, address(2, 1), PORT);
        let trips = round_trips(&left, &right, 50);
        let mean = trips.iter().sum::<Duration>() / 50;
        println!("{} mean {mean:?} min {:?}", left.local_addr().unwrap(), trips.iter().min());
        assert!(trips.iter().all(|trip| *trip >= Duration::from_nanos(2 * DELAY)), "{trips:?}");
    }
    let fitness = wire.fitness();
    println!("{fitness:?}");
    assert_eq!((fitness.packets, fitness.unrouted, fitness.malformed), (200, 0, 0));
    assert_ne!(fitness.lateness, Quantiles::default());
}
