"""The Python API: every test runs twice, on a classic session and on a Spark Connect server."""
