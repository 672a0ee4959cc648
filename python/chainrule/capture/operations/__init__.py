"""What operators, calls and indices of captured code compute.

| module | owns |
| --- | --- |
| `operators`, `ufuncs` | arithmetic and elementwise functions |
| `arrays`, `shaping`, `assembly` | arrays that are made, in other shapes, put together and cut |
| `reductions`, `products`, `triangular` | sums, extremes and other reductions; products, matrices, triangular systems |
| `indexing`, `slices` | elements, slices, indices that are arrays |
| `padding` | borders, convolutions, differences over neighbours, counts by index |
| `sorting`, `quantiles` | sorting, looking up, taking; medians and quantiles |
| `tolerant` | elementwise functions with options: tolerances, digits, replacements of NaN |
| `whole` | floats made integers, bits of integers |
| `folding` | calls with known arguments, `functools.reduce` |
| `calls` | the tables of what may be called |
"""
