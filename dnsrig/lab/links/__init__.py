"""Links: one file a kind, and the test that each is as it was asked for."""
