//! Recorded event sequences.
