"""What this package brings: one file each."""
