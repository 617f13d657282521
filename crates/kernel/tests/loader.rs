//! A control comes into the kernel, and goes.

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, libbpf_sys};
use narrows_kernel::control::Registered;
use narrows_kernel::register::available_controls;
use narrows_kernel::state::{CONNS, connections};
use narrows_kernel::{Error, available};
use narrows_laws::catalogue::kernel_name;
use narrows_laws::{Control, catalogue};

mod support;

#[test]
fn a_control_can_be_asked_for_by_its_name_until_it_is_dropped() {
    // A fixed detector is two masks: another than the law's own once, and not with each slow start again.
    let own = |control: &Control| {
        let own = Control::of(control.law);
        control.detector == own.detector || control.start() == own.start()
    };
    come_and_go("controls by name", |control| !control.detector.decides() && own(control));
}

#[test]
#[ignore = "minutes: make test-long"]
fn every_control_can_be_asked_for_by_its_name_until_it_is_dropped() {
    come_and_go("all controls by name", |control| control.detector.is_for_kernel());
}

fn come_and_go(test: &str, wanted: impl Fn(&Control) -> bool) {
    let here = available().map_err(|reason| reason.to_string());
    let Some(_turn) = support::turn_without_connections(test, here) else { return };
    // There is one state for all of them: each is there while another is.
    let other = Registered::register(Control::RENO).unwrap();
    let others = catalogue::all().filter(|control| *control != Control::RENO);
    others.filter(wanted).for_each(comes_and_goes);
    drop(other);
    let _other = Registered::register(Control::OLIA).unwrap();
    comes_and_goes(Control::RENO);
}

fn comes_and_goes(control: Control) {
    let before = available_controls().unwrap();
    let registered = Registered::register(control).unwrap();
    let name = kernel_name(control);
    assert_eq!(registered.name(), name);
    assert!(available_controls().unwrap().contains(&name), "{name}");
    let insns = registered.verified_insns().unwrap();
    println!("{name:16} {insns:?}");
    let most = support::verified_max(control);
    assert!(insns.iter().all(|(_, insns)| (1..most).contains(insns)), "{insns:?}");
    assert!(registered.counters().unwrap().iter().all(|(_, count)| *count == 0));
    assert!(connections().unwrap().is_empty());

    let taken = Registered::register(control).map(|_| ()).unwrap_err();
    assert!(matches!(&taken, Error::NameTaken(taken, _) if *taken == name), "{taken}");
    drop(registered);
    assert_eq!(available_controls().unwrap(), before);
}

#[test]
fn connections_of_another_layout_keep_a_control_out_until_they_end() {
    let Some(_alone) = support::Alone::with("another layout", &[]) else { return };
    // The state map of another build, with a connection in it.
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        map_flags: libbpf_sys::BPF_F_NO_PREALLOC,
        ..Default::default()
    };
    let theirs = MapHandle::create(MapType::Hash, Some(CONNS), 4, 8, 10, &options).unwrap();
    let token = 7u32.to_ne_bytes();
    theirs.update(&token, &[0; 8], MapFlags::NO_EXIST).unwrap();
    let before = available_controls().unwrap();

    let refused = Registered::register(Control::OLIA).map(|_| ()).unwrap_err();
    let Error::Layout { name, map, id, differs } = &refused else { panic!("{refused}") };
    assert_eq!((name.as_str(), map.as_str()), ("nr_olia", CONNS));
    assert_eq!(*id, theirs.info().unwrap().info.id);
    assert!(differs.starts_with("bytes an entry: 8, here "), "{differs}");
    assert_eq!(available_controls().unwrap(), before);

    // An empty one is in nobody's way.
    theirs.delete(&token).unwrap();
    drop(Registered::register(Control::OLIA).unwrap());
}
