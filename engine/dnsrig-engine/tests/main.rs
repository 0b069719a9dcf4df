//! The engine as its users have it: its subcommands as processes, against servers that behave and that do not.
//!
//! One binary for all: it is linked once, and tests that wait run beside those that do not.

mod process;
mod rows;
mod streams;

mod change;
mod clock;
mod command_line;
mod enter;
mod generate;
mod link;
mod load;
mod load_doq;
mod load_doq_faults;
mod load_early_data;
mod load_hold;
mod load_https;
mod load_led;
mod load_proxy;
mod load_stream;
mod merge;
mod outputs;
mod probe;
mod replay_classes;
mod replay_play;
mod replay_prepare;
mod serve;
mod serve_world;
mod serve_zones;
mod stream_speed;
mod supervision;
mod targets;
mod transfer;
mod watch;
