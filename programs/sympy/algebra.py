"""Expands, factors and differentiates polynomials by sympy. usage: algebra.py ROUNDS"""

import sys

from sympy import diff, expand, factor, integrate, symbols

x, y, z = symbols("x y z")
for at in range(1, int(sys.argv[1]) + 1):
    product = expand((x + at * y - z) ** 4 * (x - y + at) ** 3)
    print(at, len(product.args), factor(expand((x + at) ** 3 * (y - at) ** 2 * (x * y + z))))
    print(diff(product, x, y).subs({x: at, y: 2, z: 3}), integrate(product, x).subs({x: 1, y: at, z: 2}))
