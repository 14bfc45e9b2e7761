"""added_columns.py STORED NEW: prints the columns of the CSV file NEW that STORED has not. Exit status 1 unless
all columns of STORED are in NEW, in their order and with the same texts in every row, and NEW has further ones."""

import csv
import sys


def table(name):
    with open(name, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


stored, new = (table(name) for name in sys.argv[1:3])
added = [name for name in new[0] if name not in stored[0]]
places = [place for place, name in enumerate(new[0]) if name in stored[0]]
if not added or [[row[place] for place in places] for row in new] != stored:
    sys.exit(1)
print(", ".join(added))
