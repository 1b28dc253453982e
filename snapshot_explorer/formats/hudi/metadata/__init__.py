"""What the versions of a Hudi table are made of: properties, timeline, commit metadata and file groups."""
