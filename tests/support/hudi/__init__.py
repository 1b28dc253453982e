"""What tests of Hudi share: tables written by hand."""
