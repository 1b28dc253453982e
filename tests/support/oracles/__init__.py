"""What tests against real engines share. Modules that use an engine run in the environment of `.ci/oracles`."""
