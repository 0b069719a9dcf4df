"""Parts of procedures: what several of them share, and what is too large for one file."""
