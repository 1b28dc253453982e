"""What every layer shares: errors, records, limits, progress, refs and the schemas of frames.

No I/O, and nothing is drawn here.
"""
