//! Scenarios, runs, metrics and tables of Narrows.
