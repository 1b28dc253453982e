"""The contents of an explorer's views. No widgets."""
