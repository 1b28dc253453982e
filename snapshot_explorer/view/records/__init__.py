"""What is drawn of records: a module per subject, imported by `view.dispatch` when one of its records is drawn.

What several of them need is in `view` itself.
"""
