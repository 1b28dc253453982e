"""What tests of Delta Lake share: logs written by hand, and scenarios that its own connector writes."""
