"""What the views of an explorer contain. No widgets."""
