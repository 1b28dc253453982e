"""What tests of Paimon share: tables, splits and bytes written by hand."""
