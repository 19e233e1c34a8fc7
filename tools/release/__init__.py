"""A release, from a commit to what is published: `make release`."""
