//! What every subcommand needs around its work: time, events, files of rows, threads, how it stops and how it fails.
//!
//! - Time: [`clock`], [`pacer`] (how often something may be done).
//! - Output: [`events`] (JSON lines and text for people, each through a [`writer`]), [`rows`] (Arrow files) and
//!   [`row_writer`] (a thread that writes them), [`output`] (files that appear whole).
//! - The process: [`threads`], [`stop`] (signals and the end of standard input), [`failure`] (sentence, hint and exit
//!   code), [`open_files`] (the limit on descriptors).
//! - The command line: [`units`] (durations, shares, rates), [`target`] (addresses, and which of them may be used),
//!   [`old_spellings`].
//! - Numbers: [`random`], [`draw`] and [`popularity`] (distributions), [`stats`] (histograms of times), [`hash`].
//! - The kernel: [`kernel_text`] (files of /proc and of cgroups), [`netlink`], [`route`]. Input files: [`whole_file`].
//!
//! Nothing here knows DNS or a socket of the measurement.

pub mod clock;
pub mod draw;
pub mod events;
pub mod failure;
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
pub mod stats;
pub mod stop;
pub mod target;
pub mod threads;
pub mod units;
pub mod whole_file;
pub mod writer;
