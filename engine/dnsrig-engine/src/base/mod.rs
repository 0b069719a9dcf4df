//! What every subcommand needs around its work: time, events, files of rows, threads, how it stops and how it fails.
//!
//! Nothing here knows DNS or a socket of the measurement.

pub mod clock;
pub mod draw;
pub mod events;
pub mod failure;
#[cfg(test)]
pub mod fuzz;
pub mod hash;
pub mod kernel_text;
pub mod netlink;
pub mod old_spellings;
pub mod open_files;
pub mod output;
pub mod pacer;
pub mod popularity;
pub mod random;
pub mod route;
pub mod row_writer;
pub mod rows;
pub mod stop;
pub mod target;
#[cfg(test)]
pub mod testing;
pub mod threads;
pub mod units;
pub mod whole_file;
pub mod writer;
