//! The detectors compared on the networks of a design.

mod design;
mod findings;
mod tables;

pub(crate) use design::Design;

use crate::{Paper, Table};

/// The tables of docs/results/detectors-compared.md.
pub const PAPER: Paper = Paper {
    name: "detectors",
    title: "detectors compared on the same packets, and each in charge of a connection",
    document: "results/detectors-compared.md",
    tables: &[
        Table { name: "summary", about: "how many cells each is right in", make: tables::summary },
        Table {
            name: "wrong",
            about: "where xcorr is wrong in more than 1 %",
            make: tables::wrong,
        },
        Table {
            name: "cells",
            about: "right, wrong and not sure, one factor at a time",
            make: tables::cells,
        },
        Table { name: "drawn", about: "the same of the drawn cells", make: tables::drawn },
        Table {
            name: "drawn-levels",
            about: "what the drawn cells are",
            make: tables::drawn_levels,
        },
        Table {
            name: "twins",
            about: "each drawn network as separate and as shared one",
            make: tables::twins,
        },
        Table {
            name: "first",
            about: "how long until all pairs were first right",
            make: tables::first,
        },
        Table {
            name: "switches",
            about: "how long a shift takes to be followed",
            make: tables::switches,
        },
        Table {
            name: "calibration",
            about: "how often answers were right, by their strength",
            make: tables::calibration,
        },
        Table {
            name: "ratios",
            about: "closed loop: goodput over that of TCP, and accuracy",
            make: tables::ratios,
        },
    ],
};
