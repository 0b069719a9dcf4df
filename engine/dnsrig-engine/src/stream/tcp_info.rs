//! What the kernel knows of a connection (tcp(7), TCP_INFO).
