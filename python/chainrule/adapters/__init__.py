"""Functions in other packages: `chainrule.adapters.scipy`, `.jax`, `.torch`, `.cyipopt`, `.numba`, `.casadi`.

Each is imported by itself and needs its package. joblib, Dask, Ray and multiprocessing take functions as they are, for these can be pickled;
pandas objects are arguments as arrays are.
"""
