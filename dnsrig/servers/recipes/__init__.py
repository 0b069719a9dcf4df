"""How servers are built from their repositories: one file a server, with a `Recipe` that its driver names."""
