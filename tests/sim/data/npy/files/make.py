"""Writes the .npy files of this folder with NumPy, in the layouts that the reader must know.

Run `python3 make.py` in this folder; needs NumPy. The entry in row i, place j (of a row in C order) is
10 i + j, negative where i + j is odd and the type has a sign; of bools it is 1 where i + j is odd.
"""

import numpy as np
from numpy.lib import format as npy

i, j = np.indices((4, 6))
base = 10 * i + j
signed = np.where((i + j) % 2, -base, base)

for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64"):
    np.save(f"{name}.npy", signed.astype(name))
for name in ("uint8", "uint16", "uint32", "uint64"):
    np.save(f"{name}.npy", base.astype(name))
np.save("bool.npy", (i + j) % 2 == 1)
np.save("fortran.npy", np.asfortranarray(signed.astype("float32")))
np.save("fortran_3d.npy", np.asfortranarray(signed.astype("int16").reshape(4, 2, 3)))
np.save("vector.npy", signed[:, 0].astype("int64"))
np.save("big_endian.npy", signed.astype(">f8"))
np.save("big_endian_fortran.npy", np.asfortranarray(signed.astype(">f4")))
np.save("big_endian_integers.npy", signed.astype(">i8"))
for version in ((2, 0), (3, 0)):
    with open(f"version_{version[0]}.npy", "wb") as file:
        npy.write_array(file, signed.astype("float64"), version=version)

np.save("refused_object.npy", np.array([[1, None]], dtype=object))
np.save("refused_fields.npy", np.zeros(3, dtype=[("x", "f8"), ("y", "i4")]))
np.save("refused_complex.npy", signed.astype("complex128"))
np.save("refused_text.npy", np.array(["a", "bc"]))
np.save("refused_no_rows.npy", np.zeros((0, 3)))
np.save("refused_no_columns.npy", np.zeros((3, 0)))
np.save("refused_scalar.npy", np.float64(1))
np.savez("refused_archive.npz", signed)
