"""What bench/measure.py measures, a file for each kind of measurement."""
