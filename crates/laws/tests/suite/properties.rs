//! Every law keeps every property that it owes.

use crate::common;

use common::every_law;
use narrows_laws::check::PROPERTIES;
use std::thread;

#[test]
fn every_law_keeps_its_properties() {
    thread::scope(|scope| {
        for control in every_law() {
            scope.spawn(move || {
                for property in PROPERTIES.iter().filter(|property| property.is_of(control.law)) {
                    if let Err(failure) = property.check(control) {
                        panic!("{control}, {}: {failure}", property.name);
                    }
                }
            });
        }
    });
}
