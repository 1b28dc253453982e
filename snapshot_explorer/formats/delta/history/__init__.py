"""What Delta commits did: the COMMITS frame, their entries, DESCRIBE HISTORY and DETAIL."""
