"""What operators, calls and indices of captured code compute.

| module | owns |
| --- | --- |
| `operators`, `ufuncs` | arithmetic and elementwise functions |
| `arrays`, `shaping` | arrays that are made, and arrays in other shapes |
| `reductions`, `products` | sums, extremes and other reductions; products, matrices |
| `indexing`, `slices` | elements, slices, indices that are arrays |
| `padding` | borders, convolutions, differences over neighbours, counts by index |
| `sorting` | sorting, looking up, taking |
| `whole` | floats made integers, bits of integers |
| `folding` | calls with known arguments, `functools.reduce` |
| `calls` | the tables of what may be called |
"""
