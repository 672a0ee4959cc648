//! Names that emitted code cannot use unchanged, or that are close to such names.

use crate::filetests;
use chainrule_base::Name;
use chainrule_kernel::Kernel;

/// Prefixes of reserved families, keywords, library functions, macros, and names that the emitted code uses itself.
const NAMES: &str = "\
    int integrate interpolate interval integer int_ int_t int8_t int_fast int64 uint uintx uint_of uint8_t INT INT8 INTEGRAL \
    UINT UINT_ UINT8_MAX m M m_ M_ M_PI M_x size SIZE SIZE_ SIZE_MAX size_t sig SIG SIG_ SIG_x signal fp FP FP_ FP_NAN math \
    MATH MATH_ math_errhandling wchar WCHAR wchar_t wint WINT ptrdiff PTRDIFF ptrdiff_t cr CR cr_ CR_ cr_sign CR_VECTOR _ _x \
    __ __x _X _X_ _2 __1 r i b c r_ r_7 i_7 b_7 c_7 r_7_ r_part i_part1 c_work x x_ x_x X X_ x_2 x__2 X_E_SIZE x_part x_part1 \
    x_error x_work_size X_WORK_SIZE x_batch x_work_len x_iwork_len x_point x_element E_SIZE E_OVERFLOW sin cos exp log pow \
    sqrt fma fabs sincos y0 y1 yn j0 jn gamma lgamma nan NAN NULL INFINITY HUGE_VAL HUGE DOMAIN OVERFLOW UNDERFLOW EOF I \
    _Complex complex errno main abs div printf exit abort index time read write wait select double float long short signed \
    unsigned auto register volatile restrict inline static const struct union enum if else for while do switch case default \
    break continue return goto void char bool true false typeof asm class new delete this template operator namespace \
    private public virtual catch throw try using xor and or not linux unix i386 fn let mut match mod move impl trait type use \
    self Self super crate pub ref where async await dyn loop gen box Some None Ok Err Option Result Vec String f32 f64 u8 i32 \
    i64 usize str drop std core alloc libm elementary Failure Error panic vec println assert write_str work iwork n n_points \
    points code out result lane lanes block k threads omp omp_get_num_threads memset memcpy u3bb u8_prime";

/// Returns kernels with each of these names for a function, an argument and a size.
#[must_use]
pub fn awkwardly_named() -> Vec<(&'static str, Kernel)> {
    let kernel = filetests::kernel("picked-sums");
    NAMES.split_ascii_whitespace().map(|name| (name, renamed(&kernel, name))).collect()
}

/// Returns the kernel under another name, which its first argument, first result and first size have as well.
fn renamed(kernel: &Kernel, name: &str) -> Kernel {
    let mut kernel = kernel.clone();
    let name = Name::new(name);
    kernel.name = name.clone();
    kernel.sizes[0].name = name.clone();
    kernel.inputs[0].name = name.clone();
    kernel.outputs[0].name = name;
    kernel
}
