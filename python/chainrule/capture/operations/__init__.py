"""What operators, calls and indices of captured code compute.

| module | owns |
| --- | --- |
| `operators`, `ufuncs`, `elementwise` | arithmetic, the table of elementwise functions, their calls |
| `arrays`, `shaping`, `assembly` | arrays that are made, in other shapes, put together and cut |
| `reductions`, `options` | sums, extremes and other reductions; the parameters that NumPy's have |
| `products`, `triangular`, `factors`, `norms` | products, matrices, triangular systems; QR factors and least squares; norms |
| `indexing`, `slices` | elements, slices, indices that are arrays |
| `padding` | borders, convolutions, differences over neighbours |
| `polynomials`, `histograms` | polynomials, integrals, interpolation; counts by index and by interval |
| `mapped` | Python functions of parts of arrays |
| `sorting`, `quantiles` | sorting, looking up, taking; medians and quantiles |
| `tolerant` | elementwise functions with options: tolerances, digits, replacements of NaN |
| `whole` | floats made integers, bits of integers |
| `folding` | calls with known arguments, `functools.reduce` |
| `builtins`, `properties` | functions of Python and `math`; shapes, sizes and dtypes |
| `table`, `calls` | the tables of what may be called; calls by these tables |
"""
