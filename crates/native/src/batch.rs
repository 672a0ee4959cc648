//! Points of a batch: packing between the caller's strides and the tiles of the code, in which the lanes of an element
//! are adjacent.

use chainrule_runtime::Part;

/// Packs points `first..first + n` into the lanes of `tile`. Lanes beyond them repeat the last point, so that they
/// compute nothing unusual. `shape` is first, n, stride of points, stride of elements.
pub(crate) fn pack<const W: usize>(tile: &mut [f64], data: &[f64], shape: (usize, usize, usize, usize)) {
    let (first, n, point, element) = shape;
    if n == 0 {
        return;
    }
    let mut done = 0;
    if element == 1 && n == W {
        let len = tile.len() / W;
        // A batch of structures: blocks of four points and four elements are transposed.
        done = len - len % 4;
        // SAFETY: a program is only made for a level that the processor has, and all levels have AVX.
        unsafe { turn_in::<W>(tile, data, first * point, point, done) };
    }
    for (e, lanes) in tile.as_chunks_mut::<W>().0.iter_mut().enumerate().skip(done) {
        let start = first * point + e * element;
        if point == 1 && n == W {
            lanes.copy_from_slice(&data[start..start + W]);
        } else {
            for (l, to) in lanes.iter_mut().enumerate() {
                *to = data[start + l.min(n - 1) * point];
            }
        }
    }
}

/// Packs the first `done` elements of `W` points, from `data[start]` on, into the lanes of `tile`, in transposed
/// blocks.
#[target_feature(enable = "avx")]
fn turn_in<const W: usize>(tile: &mut [f64], data: &[f64], start: usize, point: usize, done: usize) {
    for lane in (0..W).step_by(4) {
        for e in (0..done).step_by(4) {
            let rows = std::array::from_fn(|l| {
                let at = start + (lane + l) * point + e;
                data[at..at + 4].try_into().unwrap_or([0.0; 4])
            });
            for (i, column) in transposed(rows).into_iter().enumerate() {
                let at = (e + i) * W + lane;
                tile[at..at + 4].copy_from_slice(&column);
            }
        }
    }
}

/// Unpacks, the inverse of [`turn_in`].
///
/// # Safety
/// All written elements are inside the memory of `data`, and are not accessed by others.
#[target_feature(enable = "avx")]
unsafe fn turn_out<const W: usize>(tile: &[f64], data: *mut f64, start: usize, point: usize, done: usize) {
    for lane in (0..W).step_by(4) {
        for e in (0..done).step_by(4) {
            let rows = std::array::from_fn(|i| {
                let at = (e + i) * W + lane;
                tile[at..at + 4].try_into().unwrap_or([0.0; 4])
            });
            for (l, column) in transposed(rows).into_iter().enumerate() {
                let at = start + (lane + l) * point + e;
                // SAFETY: the caller's promise.
                unsafe { data.add(at).cast::<[f64; 4]>().write_unaligned(column) };
            }
        }
    }
}

/// Transposes a block.
#[target_feature(enable = "avx")]
#[inline]
fn transposed(rows: [[f64; 4]; 4]) -> [[f64; 4]; 4] {
    use std::arch::x86_64::{__m256d, _mm256_permute2f128_pd, _mm256_unpackhi_pd, _mm256_unpacklo_pd};
    // SAFETY: four doubles are four doubles.
    let [a, b, c, d] = rows.map(|row| unsafe { std::mem::transmute::<[f64; 4], __m256d>(row) });
    let (low, high) =
        ((_mm256_unpacklo_pd(a, b), _mm256_unpacklo_pd(c, d)), (_mm256_unpackhi_pd(a, b), _mm256_unpackhi_pd(c, d)));
    let columns = [
        _mm256_permute2f128_pd::<0x20>(low.0, low.1),
        _mm256_permute2f128_pd::<0x20>(high.0, high.1),
        _mm256_permute2f128_pd::<0x31>(low.0, low.1),
        _mm256_permute2f128_pd::<0x31>(high.0, high.1),
    ];
    // SAFETY: as above.
    columns.map(|column| unsafe { std::mem::transmute::<__m256d, [f64; 4]>(column) })
}

/// Unpacks the lanes of `tile` to points `first..first + n` of this part, as many elements as the tile has.
pub(crate) fn unpack<const W: usize>(part: &mut Part<'_>, tile: &[f64], first: usize, n: usize) {
    let chunks = tile.as_chunks::<W>().0;
    let Some(data) = part.doubles(first, n, chunks.len()) else { return };
    let (point, element) = (part.point(), part.element());
    let mut done = 0;
    if element == 1 && n == W {
        done = chunks.len() - chunks.len() % 4;
        // SAFETY: the points have that many elements, and belong to this part. All levels have AVX.
        unsafe { turn_out::<W>(tile, data, first * point, point, done) };
    }
    for (e, lanes) in chunks.iter().enumerate().skip(done) {
        let start = first * point + e * element;
        if point == 1 && n == W {
            // SAFETY: as above.
            unsafe { data.add(start).cast::<[f64; W]>().write_unaligned(*lanes) };
        } else {
            for (l, from) in lanes.iter().take(n).enumerate() {
                // SAFETY: as above.
                unsafe { data.add(start + l * point).write(*from) };
            }
        }
    }
}
