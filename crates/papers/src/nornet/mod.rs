//! NorNet: six controls over three by two providers (Fu, Zhou, Dreibholz, Wang, Zhou and Gan, "Performance Comparison
//! of Congestion Control Strategies for Multi-Path TCP in the NorNet Testbed", IEEE/CIC ICCC 2015), modelled by
//! `scenarios/nornet/mesh.toml`.

mod claims;
mod map;
mod networks;
mod tables;

use crate::{Paper, Table};

/// The tables of docs/results/nornet.md.
pub const PAPER: Paper = Paper {
    name: "nornet",
    title: "six controls over three by two providers",
    document: "results/nornet.md",
    tables: &[
        Table {
            name: "headline",
            about: "what the abstract and the conclusion rest on, and in how many cells of the map it holds",
            make: map::headline,
        },
        Table {
            name: "claims",
            about: "Section V: every claim of the text, by Linux",
            make: claims::claims,
        },
        Table {
            name: "figure-2-3.14",
            about: "Figure 2: one TCP over each pair, Linux of its time",
            make: |runs| tables::figure_2(runs, &networks::ERAS[0]),
        },
        Table {
            name: "figure-2-today",
            about: "Figure 2: one TCP over each pair, today's Linux",
            make: |runs| tables::figure_2(runs, &networks::ERAS[2]),
        },
        Table {
            name: "figures-3-and-4-3.14",
            about: "Figures 3 and 4: the connection, by first pair, Linux of its time",
            make: |runs| tables::figures_3_and_4(runs, &networks::ERAS[0]),
        },
        Table {
            name: "figures-3-and-4-3.14-v0.89",
            about: "Figures 3 and 4: the connection, by first pair, Linux of its time with MPTCP v0.89's scheduler",
            make: |runs| tables::figures_3_and_4(runs, &networks::ERAS[1]),
        },
        Table {
            name: "figures-3-and-4-today",
            about: "Figures 3 and 4: the connection, by first pair, today's Linux",
            make: |runs| tables::figures_3_and_4(runs, &networks::ERAS[2]),
        },
        Table {
            name: "where-3.14",
            about: "where the data went, Linux of its time",
            make: |runs| tables::data_went(runs, &networks::ERAS[0]),
        },
        Table {
            name: "where-3.14-v0.89",
            about: "where the data went, Linux of its time with MPTCP v0.89's scheduler",
            make: |runs| tables::data_went(runs, &networks::ERAS[1]),
        },
        Table {
            name: "where-today",
            about: "where the data went, today's Linux",
            make: |runs| tables::data_went(runs, &networks::ERAS[2]),
        },
        Table { name: "others", about: "networks that differ in one thing", make: tables::others },
        Table {
            name: "map-claims",
            about: "which claims are reproduced, by buffer, ADSL's queue and loss",
            make: map::holds,
        },
        Table {
            name: "map-goodput",
            about: "goodput, by buffer, ADSL's queue and loss",
            make: map::goodput,
        },
        Table {
            name: "detector",
            about: "what xcorr found, and what it gains",
            make: tables::detector,
        },
    ],
};
