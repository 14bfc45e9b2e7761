"""Short tests of an installed package: ``pytest --pyargs moelab``."""
