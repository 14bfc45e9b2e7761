"""Reference trajectory of the two-component problem (Dikkala et al. 2023, appendix F), independent of the program.

The truncated Gaussian is averaged over by a fine trapezoidal rule in two variables: t, the component along w,
and the distance across it (a scaled chi with d - 1 degrees of freedom). No special functions.
Prints step, |w|, cos(w, z) and |u - v| / |v|: the numbers in theorem4_test.cpp and in the checks
dikkala2023.theorem4.norm_1e4 and .norm_1e5.

    python3 reference.py
"""

import numpy as np

DIM, SIGMA, RADIUS = 10, 0.15, 0.7
VALUE = np.array([1.0, -2.0])
RATE_W, RATE_U, SCALE = 0.05, 0.5, 1e-3


def density(t):
    """Unnormalised density of t = g . w / |w| for g ~ N(0, sigma^2 I) given |g| <= radius."""
    mass = np.empty_like(t)
    for i, value in enumerate(t):
        across = np.linspace(0, np.sqrt(RADIUS**2 - value**2), 4001)  # |g - t w / |w||
        mass[i] = np.trapezoid(across ** (DIM - 2) * np.exp(-(across**2) / (2 * SIGMA**2)), across)
    return mass * np.exp(-(t**2) / (2 * SIGMA**2))


def main():
    if not hasattr(np, "trapezoid"):
        np.trapezoid = np.trapz
    t = np.linspace(-RADIUS, RADIUS, 401)
    weights = density(t)
    weights /= weights.sum()  # trapezoidal rule: the density vanishes at both ends
    rng = np.random.default_rng(0)
    z = rng.standard_normal(DIM)
    z /= np.linalg.norm(z)
    w = SCALE * rng.standard_normal(DIM)
    w *= np.sign(w @ z)
    u = SCALE * rng.standard_normal(2)
    for step in range(1, 100001):
        norm = np.linalg.norm(w)
        q = np.tanh((w @ z + norm * t) / 2)
        slope = (1 - q**2) / 2
        pull = slope * (q * (u @ u) - VALUE @ u)
        grad_u = 4 * (weights @ q**2 * u - weights @ q * VALUE)
        grad_w = 4 * (weights @ pull * z + weights @ (pull * t) * w / norm)
        w, u = w - RATE_W * grad_w, u - RATE_U * grad_u
        if step in (100, 1000, 10000, 100000):
            norm = np.linalg.norm(w)
            distance = np.linalg.norm(u - np.sign(w @ z) * VALUE) / np.linalg.norm(VALUE)
            print(f"{step:6d}  |w| {norm:.6f}  cos {w @ z / norm:.9f}  |u - v|/|v| {distance:.6e}")


if __name__ == "__main__":
    main()
