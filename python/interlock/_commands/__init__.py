"""The commands of `interlock`, one module each: `add_to` declares it, `run` does it."""
