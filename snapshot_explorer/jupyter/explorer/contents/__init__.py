"""The contents of an explorer's views. No widgets. What the page does with them is in `page`."""
