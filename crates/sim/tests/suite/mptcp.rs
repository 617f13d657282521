//! MPTCP as Linux does it: schedulers, paths that fail, come and go, backups, fallback.

use crate::common;

use common::*;
use narrows_laws::State;
use narrows_net::{Limit, LinkConfig, LinkId, Loss, Nanos, Rate};
use narrows_sim::{ConnectionConfig, PathConfig, Sim};
use narrows_traffic::{ConnId, PathManager, Scheduler, SizeDist, Source};

/// A path over a link of its own: rate in Mbit/s, one-way delay, a queue of so many packets.
fn own_path(sim: &mut Sim, mbit: u64, delay: Nanos, packets: u32) -> (PathConfig, LinkId) {
    let config = link("there", Rate::Constant(mbit * MBIT), delay);
    let there = add(sim, LinkConfig { limit: Limit::Packets(packets), jitter: MS, ..config });
    let back = add(sim, link("back", Rate::Infinite, delay));
    (path(sim, &[there], &[back]), there)
}

/// Runs on until the file has arrived, and returns when; checks that it arrived once and whole.
fn completed(sim: &mut Sim, connection: ConnId, bytes: u64, within: Nanos) -> Nanos {
    while sim.connection(connection).completed.is_none() && sim.now() < within {
        sim.run_until(sim.now() + S);
    }
    let stats = sim.connection(connection);
    assert_eq!(stats.delivered_bytes, bytes, "{stats:#?}");
    assert!(sim.network().is_conserved());
    stats.completed.expect("the file has arrived")
}

fn states(sim: &Sim, connection: ConnId) -> Vec<State> {
    sim.connection(connection).paths.iter().map(|path| path.state).collect()
}

/// Mbit/s of payload that a path carried since it was last asked.
fn carried(sim: &mut Sim, connection: ConnId, path: usize, until: Nanos) -> f64 {
    let start = sim.now();
    let before = sim.connection(connection).paths[path].delivered_bytes;
    sim.run_until(until);
    let bytes = sim.connection(connection).paths[path].delivered_bytes - before;
    bytes as f64 * 8e3 / (until - start) as f64
}

/// A subflow that is silent while the other is not is given up after five periods of the
/// connection's timer, each 200 ms or somewhat more: about a second. Its data goes out on the
/// other, and when the path works again it is used again.
#[test]
fn a_dead_path_is_stale_after_a_second_and_comes_back() {
    let mut sim = Sim::new(1);
    let dies = add(&mut sim, with_outages("dies", &[(3_000, 8_000)], 40));
    let back = add(&mut sim, link("back", Rate::Infinite, 10 * MS));
    let dies = path(&mut sim, &[dies], &[back]);
    let (stays, _) = own_path(&mut sim, 10, 20 * MS, 40);
    let connection = sim.add_connection(greedy(vec![dies, stays]));
    sim.run_until(3_500 * MS);
    assert_eq!(states(&sim, connection), [State::Active, State::Active]);
    assert_eq!(sim.connection(connection).reinjections, 0);
    sim.run_until(4_500 * MS);
    assert_eq!(states(&sim, connection), [State::Failed, State::Active]);
    let stats = sim.connection(connection);
    assert!(stats.reinjections > 0, "{stats:#?}");
    assert!(stats.delivered_bytes > 3 * 20 * MBIT / 8, "the gap is filled: {stats:#?}");
    sim.run_until(16 * S);
    assert_eq!(states(&sim, connection), [State::Active, State::Active]);
    assert!(carried(&mut sim, connection, 0, 20 * S) > 10.0);
}

/// Silence counts from the last acknowledgement: what was before does not make it shorter, or keep
/// the path from being given up.
#[test]
fn short_silences_are_forgotten() {
    let mut sim = Sim::new(1);
    let pauses = [2_000, 2_600, 3_200, 3_800, 4_400].map(|ms| (ms, ms + 300));
    let outages = [&pauses[..], &[(6_000, 20_000)]].concat();
    let dies = add(&mut sim, with_outages("dies", &outages, 40));
    let back = add(&mut sim, link("back", Rate::Infinite, 10 * MS));
    let dies = path(&mut sim, &[dies], &[back]);
    let (stays, _) = own_path(&mut sim, 10, 20 * MS, 40);
    let connection = sim.add_connection(greedy(vec![dies, stays]));
    for until in [2_500, 3_100, 3_700, 4_300, 5_000] {
        sim.run_until(until * MS);
        assert_eq!(states(&sim, connection)[0], State::Active);
    }
    sim.run_until(8 * S);
    assert_eq!(states(&sim, connection)[0], State::Failed);
}

/// Who is silent is given up for one that does better. If both stand still neither is, and nobody
/// sends what the other holds.
#[test]
fn of_two_silent_paths_none_is_given_up() {
    let mut sim = Sim::new(1);
    let back = add(&mut sim, link("back", Rate::Infinite, 10 * MS));
    let paths = [(); 2].map(|()| {
        let there = add(&mut sim, with_outages("radio", &[(3_000, 7_000)], 40));
        path(&mut sim, &[there], &[back])
    });
    let connection = sim.add_connection(greedy(paths.to_vec()));
    sim.run_until(6_900 * MS);
    assert_eq!(states(&sim, connection), [State::Active, State::Active]);
    assert_eq!(sim.connection(connection).reinjections, 0);
}

/// An application that writes little uses the quick path alone. That dies just before the last
/// writes; the other, which has nothing to do, sends them when the timer of the connection expires,
/// long before the path is given up.
#[test]
fn an_idle_subflow_sends_what_the_receiver_waits_for() {
    let mut sim = Sim::new(1);
    let (quick, dies) = own_path(&mut sim, 10, 10 * MS, 40);
    let (slow, _) = own_path(&mut sim, 10, 30 * MS, 40);
    let source = Source::Rate { mean_pps: 100.0, size: SizeDist::Constant(1000) };
    let connection = sim.add_connection(ConnectionConfig {
        source,
        active: vec![(0, 5 * S)],
        scheduler: Scheduler::MinRtt,
        ..greedy(vec![quick, slow])
    });
    let mut delivered = |until| {
        sim.run_until(until);
        if until < 5 * S {
            sim.set_link_up(dies, false);
        }
        (sim.connection(connection).delivered_bytes, states(&sim, connection)[0])
    };
    let [before, soon, late] = [4_900 * MS, 5_600 * MS, 60 * S].map(&mut delivered);
    assert!(soon.0 > before.0 && soon.0 == late.0, "{before:?} {soon:?} {late:?}");
    assert_eq!(soon.1, State::Active);
}

/// A backup sends what the receiver waits for only if nobody else gets on: not at the first expiry
/// of the connection's timer, two round trips after the path fell silent, but at the second, 200 ms
/// later (Linux: min_stale_count in mptcp_subflow_get_retrans()).
#[test]
fn a_backup_helps_out_at_the_second_expiry() {
    let sent_by_backup = |outage: u64| {
        let mut sim = Sim::new(1);
        let there = add(&mut sim, with_outages("radio", &[(4_000, 4_000 + outage)], 40));
        let back = add(&mut sim, link("back", Rate::Infinite, 10 * MS));
        let regular = path(&mut sim, &[there], &[back]);
        let (backup, _) = own_path(&mut sim, 10, 20 * MS, 40);
        let backup = PathConfig { backup: true, ..backup };
        let connection = sim.add_connection(greedy(vec![regular, backup]));
        sim.run_until(6 * S);
        let stats = sim.connection(connection);
        assert_eq!(stats.paths[0].state, State::Active);
        stats.paths[1].sent_packets
    };
    assert_eq!(sent_by_backup(250), 0);
    assert!(sent_by_backup(700) > 10);
}

/// A subflow whose SYNs nobody answers has a timer that backs off for minutes; the connection's does
/// not wait for it (Linux: mptcp_subflow_get_send() looks at subflows that carry data).
#[test]
fn a_join_that_nobody_answers_does_not_slow_the_connection() {
    let mut sim = Sim::new(1);
    let dies = add(&mut sim, with_outages("dies", &[(4_000, 59_999)], 40));
    let back = add(&mut sim, link("back", Rate::Infinite, 10 * MS));
    let dies = path(&mut sim, &[dies], &[back]);
    let (stays, _) = own_path(&mut sim, 10, 20 * MS, 40);
    let (silent, nowhere) = own_path(&mut sim, 10, 20 * MS, 40);
    sim.set_link_up(nowhere, false);
    let connection = sim.add_connection(greedy(vec![dies, stays, silent]));
    sim.run_until(5_500 * MS);
    assert_eq!(states(&sim, connection), [State::Failed, State::Active, State::Free]);
}

/// The application stops reading, and one path dies; what it held goes out on the other. That the
/// window is open again is told on every path; and if the news is lost the sender asks for it,
/// whatever the dead path still holds.
#[test]
fn a_closed_window_is_asked_for_though_a_path_is_dead() {
    for (scheduler, lost) in SCHEDULERS.into_iter().flat_map(|s| [(s, false), (s, true)]) {
        let mut sim = Sim::new(1);
        let links = [(); 2].map(|()| {
            let there = link("there", Rate::Constant(10 * MBIT), 10 * MS);
            [there, link("back", Rate::Infinite, 10 * MS)].map(|config| add(&mut sim, config))
        });
        let paths = links.map(|[there, back]| path(&mut sim, &[there], &[back]));
        let config = ConnectionConfig { recv_buffer: 500_000, scheduler, ..greedy(paths.to_vec()) };
        let connection = sim.add_connection(config);
        sim.run_until(S);
        for link in links[0] {
            sim.set_link_up(link, false);
        }
        sim.set_reading(connection, false);
        sim.run_until(10 * S);
        assert_eq!(states(&sim, connection)[0], State::Failed);
        let before = sim.connection(connection).delivered_bytes;
        sim.set_link_up(links[1][1], !lost);
        sim.set_reading(connection, true);
        sim.run_until(10 * S + MS);
        sim.set_link_up(links[1][1], true);
        sim.run_until(if lost { 20 * S } else { 11 * S });
        let bytes = sim.connection(connection).delivered_bytes - before;
        assert!(bytes > 1_000_000, "{scheduler:?}, {lost}: {bytes}");
    }
}

/// The address of the first path is lost at 2 s, and comes back at 4 s, when it joins: the slot is
/// the same, its window is a new one.
#[test]
fn a_path_is_removed_and_added_during_a_transfer() {
    for scheduler in SCHEDULERS {
        let mut sim = Sim::new(1);
        let (wifi, _) = own_path(&mut sim, 20, 10 * MS, 40);
        let (lte, _) = own_path(&mut sim, 10, 30 * MS, 60);
        let bytes = 15_000_000;
        let paths = vec![wifi.clone(), lte];
        let connection = sim.add_connection(ConnectionConfig { scheduler, ..file(bytes, paths) });
        sim.run_until(2 * S);
        assert!(sim.remove_path(connection, 0));
        assert!(!sim.remove_path(connection, 0), "it is gone already");
        assert_eq!(states(&sim, connection)[0], State::Free);
        // What is still in the network of the old subflow must reach nobody.
        assert_eq!(carried(&mut sim, connection, 0, 4 * S), 0.0);
        assert_eq!(sim.add_path(connection, &wifi), Some(0));
        sim.run_until(4 * S + 39 * MS);
        assert_eq!(states(&sim, connection)[0], State::Free, "the join takes two round trips");
        sim.run_until(4 * S + 100 * MS);
        assert_ne!(states(&sim, connection)[0], State::Free);
        let time = completed(&mut sim, connection, bytes, 60 * S);
        println!("{scheduler:?}: {:.2} s", time as f64 / 1e9);
        // Bytes over the time, the quick path being away for 2 s of it.
        if scheduler != Scheduler::Redundant {
            assert!(time < 7 * S, "{scheduler:?}: {time}");
        }
    }
}

/// All paths are lost; the connection waits for a new one.
#[test]
fn a_connection_without_paths_goes_on_with_a_new_one() {
    let mut sim = Sim::new(1);
    let (first, _) = own_path(&mut sim, 10, 10 * MS, 40);
    let (second, _) = own_path(&mut sim, 10, 10 * MS, 40);
    let bytes = 5_000_000;
    let connection = sim.add_connection(file(bytes, vec![first, second.clone()]));
    sim.run_until(S);
    assert!(sim.remove_path(connection, 0) && sim.remove_path(connection, 1));
    let before = sim.connection(connection).delivered_bytes;
    sim.run_until(5 * S);
    assert_eq!(sim.connection(connection).delivered_bytes, before);
    assert_eq!(sim.add_path(connection, &second), Some(1), "the place it had");
    assert!(completed(&mut sim, connection, bytes, 20 * S) < 10 * S);
}

/// The first path is lost before anything was answered: the second opens the connection, with the
/// options of that, and is none that joins.
#[test]
fn the_second_path_opens_the_connection_if_the_first_is_lost_before() {
    let mut sim = Sim::new(1);
    let (first, _) = own_path(&mut sim, 10, 10 * MS, 40);
    let (second, there) = own_path(&mut sim, 10, 10 * MS, 40);
    let connection = sim.add_connection(file(3_000_000, vec![first.clone(), second]));
    sim.run_until(5 * MS);
    assert!(sim.remove_path(connection, 0));
    sim.run_until(20 * MS);
    // A SYN of 64 bytes with MP_CAPABLE; with MP_JOIN it would have 72.
    let counters = sim.network().counters(there);
    assert_eq!((counters.sent, counters.bytes_sent), (1, 64));
    assert_eq!(sim.add_path(connection, &first), Some(0));
    completed(&mut sim, connection, 3_000_000, 20 * S);
    assert!(sim.connection(connection).paths.iter().all(|path| path.delivered_bytes > 0));
}

/// The first path is lost when the connection is open, but nothing has been acknowledged: the other
/// joins at once, as it would have soon.
#[test]
fn the_second_path_joins_though_the_first_is_lost_early() {
    let mut sim = Sim::new(1);
    let [first, second] = [(); 2].map(|()| own_path(&mut sim, 10, 10 * MS, 40).0);
    let connection = sim.add_connection(file(1_000_000, vec![first, second]));
    sim.run_until(30 * MS);
    assert!(sim.connection(connection).established.is_some());
    assert!(sim.remove_path(connection, 0));
    assert!(completed(&mut sim, connection, 1_000_000, 10 * S) < 2 * S);
}

/// Eight paths are the most: the ninth has no place.
#[test]
fn a_connection_has_eight_paths_at_most() {
    let mut sim = Sim::new(1);
    let (only, _) = own_path(&mut sim, 10, 10 * MS, 40);
    let manager = PathManager::Ndiffports(8);
    let config =
        ConnectionConfig { multipath: true, path_manager: manager, ..greedy(vec![only.clone()]) };
    let connection = sim.add_connection(config);
    sim.run_until(S);
    assert_eq!(states(&sim, connection).len(), 8);
    assert!(states(&sim, connection).iter().all(|&state| state != State::Free));
    assert_eq!(sim.add_path(connection, &only), None);
    let (other, _) = own_path(&mut sim, 10, 10 * MS, 40);
    sim.remove_path(connection, 3);
    assert_eq!(sim.add_path(connection, &other), Some(3), "any place that is free");
}

/// A backup carries nothing while the regular path works, everything while it does not (within
/// about a second), and steps back afterwards. The law sees it as a backup, then active.
#[test]
fn a_backup_takes_over_and_steps_back() {
    for scheduler in SCHEDULERS {
        let mut sim = Sim::new(1);
        let regular = add(&mut sim, with_outages("regular", &[(4_000, 9_000)], 40));
        let back = add(&mut sim, link("back", Rate::Infinite, 10 * MS));
        let regular = path(&mut sim, &[regular], &[back]);
        let (backup, _) = own_path(&mut sim, 10, 20 * MS, 40);
        let backup = PathConfig { backup: true, ..backup };
        let config = ConnectionConfig { scheduler, ..greedy(vec![regular, backup]) };
        let connection = sim.add_connection(config);
        sim.run_until(4 * S);
        let stats = sim.connection(connection);
        assert_eq!(stats.paths[1].sent_packets, 0, "{scheduler:?}");
        assert_eq!(stats.paths[1].state, State::Backup);
        sim.run_until(5_500 * MS);
        assert_eq!(states(&sim, connection), [State::Failed, State::Active], "{scheduler:?}");
        let mbit = carried(&mut sim, connection, 1, 9 * S);
        assert!(mbit > 8.5, "{scheduler:?}: {mbit}");
        sim.run_until(16 * S);
        assert_eq!(states(&sim, connection), [State::Active, State::Backup], "{scheduler:?}");
        assert_eq!(carried(&mut sim, connection, 1, 20 * S), 0.0, "{scheduler:?}");
        assert!(carried(&mut sim, connection, 0, 22 * S) > 10.0, "{scheduler:?}");
    }
}

/// A middlebox takes the options of MPTCP from the first path: one subflow of plain TCP, with its
/// segments of 1448 bytes in 1500. The other path is never asked.
#[test]
fn without_options_the_connection_is_plain_tcp() {
    let mut sim = Sim::new(1);
    let (first, there) = own_path(&mut sim, 10, 10 * MS, 40);
    let (second, other) = own_path(&mut sim, 10, 10 * MS, 40);
    let first = PathConfig { strips_mptcp: true, ..first };
    let bytes = 1448 * 2000;
    let connection = sim.add_connection(file(bytes, vec![first, second.clone()]));
    completed(&mut sim, connection, bytes, 20 * S);
    let stats = sim.connection(connection);
    assert!(stats.fallback);
    assert_eq!(stats.failed_joins, 0);
    assert_eq!(sim.network().counters(other).arrived, 0);
    let sent = sim.network().counters(there);
    // SYN with MP_CAPABLE of 4 bytes, the third packet, and full packets.
    assert_eq!(sent.bytes_sent, 2000 * 1500 + 64 + 52);
    assert_eq!(sim.add_path(connection, &second), None);
    // Without its path it is at its end.
    assert!(sim.remove_path(connection, 0));
    sim.run_until(sim.now() + 10 * S);
    assert_eq!(sim.network().counters(other).arrived, 0);
}

/// A middlebox on the second path takes the option of the join: both ends drop the subflow.
#[test]
fn a_join_without_its_option_fails() {
    let mut sim = Sim::new(1);
    let (first, _) = own_path(&mut sim, 10, 10 * MS, 40);
    let (second, other) = own_path(&mut sim, 10, 10 * MS, 40);
    let second = PathConfig { strips_mptcp: true, ..second };
    let connection = sim.add_connection(file(3_000_000, vec![first, second]));
    completed(&mut sim, connection, 3_000_000, 20 * S);
    let stats = sim.connection(connection);
    assert!(!stats.fallback);
    assert_eq!((stats.failed_joins, stats.paths[1].sent_packets), (1, 0));
    assert_eq!(sim.network().counters(other).arrived, 1, "a SYN, never again");
}

/// The quick path loses a tenth of all packets, the other one none. A transfer that uses both waits
/// for the losses of the quick one at its end; sent on both it is never much later than over the
/// clean path alone.
#[test]
fn redundancy_keeps_transfers_short_when_one_path_is_lossy() {
    let times = |scheduler| {
        let mut times: Vec<Nanos> = (0..30)
            .map(|seed| {
                let mut sim = Sim::new(seed);
                let (lossy, clean) = (Loss::Random(0.1), Loss::None);
                let paths = [(30 * MS, clean), (10 * MS, lossy)].map(|(delay, loss)| {
                    let config = link("there", Rate::Constant(10 * MBIT), delay);
                    let there = add(&mut sim, LinkConfig { loss, ..config });
                    let back = add(&mut sim, link("back", Rate::Infinite, delay));
                    path(&mut sim, &[there], &[back])
                });
                let config = ConnectionConfig { scheduler, ..file(BYTES, paths.to_vec()) };
                let connection = sim.add_connection(config);
                completed(&mut sim, connection, BYTES, 60 * S)
            })
            .collect();
        times.sort_unstable();
        times
    };
    const BYTES: u64 = 500_000;
    let (once, twice) = (times(Scheduler::MinRtt), times(Scheduler::Redundant));
    println!("median and worst: minRTT {} and {} ms", once[15] / MS, once[29] / MS);
    println!("redundant {} and {} ms", twice[15] / MS, twice[29] / MS);
    assert!(twice[29] < once[29] * 3 / 4, "{} and {}", twice[29], once[29]);
}

/// Every byte of the redundant scheduler travels on both of two equal paths, and counts once.
#[test]
fn redundancy_sends_everything_twice() {
    let mut sim = Sim::new(1);
    let paths = [(); 2].map(|()| own_path(&mut sim, 10, 20 * MS, 50).0);
    let bytes = 5_000_000;
    let config =
        ConnectionConfig { scheduler: Scheduler::Redundant, ..file(bytes, paths.to_vec()) };
    let connection = sim.add_connection(config);
    let time = completed(&mut sim, connection, bytes, 20 * S);
    sim.run_until(time + 10 * S);
    let stats = sim.connection(connection);
    let on_paths: Vec<f64> =
        stats.paths.iter().map(|path| path.delivered_bytes as f64 / bytes as f64).collect();
    println!("{on_paths:?} of the file on each path, {:.2} s", time as f64 / 1e9);
    assert!(on_paths.iter().all(|&share| share > 0.9 && share <= 1.0), "{on_paths:?}");
    // As quick as one path of 10 Mbit/s.
    assert!((4 * S..5 * S).contains(&time), "{time}");
}

/// What the quick path has brought the slow one need not send.
#[test]
fn redundancy_does_not_send_what_is_acknowledged() {
    let mut sim = Sim::new(1);
    let (slow, _) = own_path(&mut sim, 1, 30 * MS, 20);
    let quick = link("quick", Rate::Constant(20 * MBIT), 10 * MS);
    let quick = add(&mut sim, LinkConfig { loss: Loss::Random(0.01), ..quick });
    let back = add(&mut sim, link("back", Rate::Infinite, 10 * MS));
    let quick = path(&mut sim, &[quick], &[back]);
    let bytes = 1424 * 2000;
    let scheduler = Scheduler::Redundant;
    let connection =
        sim.add_connection(ConnectionConfig { scheduler, ..file(bytes, vec![quick, slow]) });
    let time = completed(&mut sim, connection, bytes, 20 * S);
    sim.run_until(time + 10 * S);
    let stats = sim.connection(connection);
    assert!((50..1000).contains(&stats.paths[1].sent_packets), "{stats:#?}");
    assert_eq!(stats.head_of_line.packets, 2000);
}

/// Three subflows of one address pair and three TCP connections on one link: uncoupled they take
/// three shares, coupled about one.
#[test]
fn ndiffports_takes_one_share_if_coupled_and_n_if_not() {
    let ratio = |law: &str| {
        let mut ratio = 0.0;
        for seed in 0..3 {
            let mut sim = Sim::new(seed);
            let net = Dumbbell::new(&mut sim, 4, 40 * MBIT, 40 * MS, 133, 2 * MS);
            let rivals = [0, 1, 2].map(|n| {
                let path = net.path(&mut sim, n);
                sim.add_connection(greedy(vec![path]))
            });
            let path = net.path(&mut sim, 3);
            let connection = sim.add_connection(ConnectionConfig {
                multipath: true,
                path_manager: PathManager::Ndiffports(3),
                control: control(law),
                ..greedy(vec![path])
            });
            let bytes = |sim: &Sim, c| sim.connection(c).delivered_bytes as f64;
            let all = |sim: &Sim| -> f64 { rivals.iter().map(|&c| bytes(sim, c)).sum() };
            sim.run_until(10 * S);
            let before = (bytes(&sim, connection), all(&sim));
            sim.run_until(70 * S);
            let tcp = (all(&sim) - before.1) / 3.0;
            ratio += (bytes(&sim, connection) - before.0) / tcp / 3.0;
        }
        println!("{law}: {ratio:.2} of a TCP");
        ratio
    };
    let (coupled, uncoupled) = (ratio("lia"), ratio("reno"));
    assert!((0.6..1.4).contains(&coupled), "{coupled}");
    assert!((2.4..3.6).contains(&uncoupled), "{uncoupled}");
}

/// Two paths of unequal delay: what the quick one brings waits for the slow one. Equal delays make
/// less of it, and plain TCP is not asked.
#[test]
fn head_of_line_delay_grows_with_the_difference_of_the_paths() {
    let seen = |delays: [Nanos; 2]| {
        let mut sim = Sim::new(1);
        let paths = delays.map(|delay| own_path(&mut sim, 10, delay, 100).0);
        let config = ConnectionConfig { scheduler: Scheduler::MinRtt, ..greedy(paths.to_vec()) };
        let connection = sim.add_connection(config);
        sim.run_until(20 * S);
        let stats = sim.connection(connection);
        let seen = stats.head_of_line;
        println!("{delays:?}: {seen:?}");
        assert!(seen.packets > stats.delivered_bytes / 1424 - 1);
        assert!(seen.waited <= seen.packets && seen.mean <= seen.max && seen.p95 <= seen.max);
        seen
    };
    let (equal, unequal) = (seen([20 * MS, 20 * MS]), seen([10 * MS, 100 * MS]));
    assert!(unequal.mean > 20 * MS && unequal.mean > 2 * equal.mean);
}

/// A quick path and a slow one that share a small receive buffer. Linux does not turn to the slow
/// one just because the window of the quick one is full, as minRTT does: less waits at the
/// receiver, and the window blocks less.
#[test]
fn linux_blocks_less_than_min_rtt_in_a_small_buffer() {
    let run = |scheduler| {
        let mut sim = Sim::new(1);
        let quick = own_path(&mut sim, 20, 5 * MS, 40).0;
        let slow = own_path(&mut sim, 5, 100 * MS, 80).0;
        let recv_buffer = 100 * 1424;
        let config = ConnectionConfig { scheduler, recv_buffer, ..greedy(vec![quick, slow]) };
        let connection = sim.add_connection(config);
        sim.run_until(5 * S);
        let before = sim.connection(connection).delivered_bytes;
        sim.run_until(35 * S);
        let stats = sim.connection(connection);
        let mbit = (stats.delivered_bytes - before) as f64 * 8.0 / 30e6;
        println!("{scheduler:?}: {mbit:.2} Mbit/s, {:?}", stats.head_of_line);
        (mbit, stats.head_of_line.mean)
    };
    let (linux, min_rtt) = (run(Scheduler::Linux), run(Scheduler::MinRtt));
    assert!(linux.0 > min_rtt.0, "{linux:?} {min_rtt:?}");
    assert!(linux.1 < min_rtt.1, "{linux:?} {min_rtt:?}");
    // "Opportunistic retransmission" and "penalization".
    let old = run(Scheduler::Mptcp089);
    assert!(old.0 > 1.5 * min_rtt.0, "{old:?} {min_rtt:?}");
    assert!(old.1 < min_rtt.1, "{old:?} {min_rtt:?}");
}
