//! The task that looks after a connection, with real sockets of the loopback device.

#[path = "common/loopback.rs"]
mod loopback;

use loopback::connect;
use narrows_laws::user::{Checks, load};
use narrows_quic::{Advice, Coupling, tend};
use noq::{FourTuple, PathStatus};
use std::time::Duration;

/// Polls until `done`; panics with what was waited for after 30 s.
async fn until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("after 30 s still not: {what}");
}

#[tokio::test]
async fn a_path_is_parked_on_advice_comes_back_is_pinged_and_leaves_when_closed() {
    load(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/adviser.h").as_ref(), Checks::None).unwrap();
    let factory = Coupling::new("adviser").unwrap().factory();
    let (client, server, second) = connect(factory.clone()).await;
    let task = tokio::spawn(tend(&client, factory.clone(), Duration::from_millis(50)));

    // The pings alone bring acknowledgements, from which the law speaks.
    let status = |wanted: PathStatus| second.status() == Ok(wanted);
    until("parked", || status(PathStatus::Backup)).await;
    let state = factory.path(client.congestion_state(second.id()).unwrap()).unwrap();
    assert_eq!((state.slot, state.advice), (1, Advice::Backup));
    until("back", || status(PathStatus::Available)).await;
    assert!(server.path(second.id()).unwrap().stats().frame_rx.ping >= 10);

    second.close().unwrap();
    until("gone", || factory.snapshot().paths.len() == 1).await;
    client.close(0u8.into(), b"");
    tokio::time::timeout(Duration::from_secs(30), task).await.expect("it ends").unwrap();
}

#[tokio::test]
async fn a_path_whose_events_were_lost_is_pinged() {
    let factory = Coupling::new("reno").unwrap().factory();
    let (client, server, second) = connect(factory.clone()).await;
    // It listens from now on, and looks later than 32 events, which is what noq holds.
    let late = tend(&server, factory, Duration::from_millis(50));
    let port = client.path(noq::PathId::ZERO).unwrap().remote_address().unwrap().port();
    let address = FourTuple::new(([127, 0, 0, 3], port).into(), None);
    let opened = async {
        loop {
            match client.open_path(address, PathStatus::Available).await {
                Ok(path) => break path,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let third = tokio::time::timeout(Duration::from_secs(30), opened).await.expect("a third path");
    for at in 0..40 {
        let status = [PathStatus::Backup, PathStatus::Available][at % 2];
        second.set_status(status).unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let before = third.stats().frame_rx.ping;
    let task = tokio::spawn(late);
    until("pinged", || third.stats().frame_rx.ping >= before + 3).await;
    client.close(0u8.into(), b"");
    tokio::time::timeout(Duration::from_secs(30), task).await.expect("it ends").unwrap();
}
