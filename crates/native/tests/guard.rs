//! Arguments at the end of mapped memory: code that reads further ends the process.

#![cfg(all(target_arch = "x86_64", unix))]
#![allow(unsafe_code)] // memory that ends
#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule_ir::{Builder, Size, Type};
use chainrule_kernel::{lower_function, streamline, vectorise};
use chainrule_native::{Level, Options, Program, Workspace};
use chainrule_ops::{Op, Semantics};
use chainrule_runtime::{Backend, Slice, SliceMut};
use memmap2::MmapOptions;
use std::sync::Arc;

const PAGE: usize = 4096;

/// Returns the sum of the first fields of each record.
fn sums(width: i64, n_fields: i64) -> chainrule_ir::Function {
    let mut b = Builder::new("sums");
    let n = Size::var(b.size_param("n"));
    let row = Type::array(Size::constant(width), Type::Double);
    let x = b.param("x", Type::array(n.clone(), row));
    let result = b.build(n, |b, i| {
        let record = b.get(x, i);
        let mut sum = b.real(0.0);
        for field in width - n_fields..width {
            let field = b.int(field);
            let value = b.get(record, field);
            sum = b.op(Op::Add, &[sum, value]);
        }
        sum
    });
    b.finish(result)
}

#[test]
fn nothing_is_read_behind_an_argument() {
    let mut file = tempfile::tempfile().unwrap();
    let numbers: Vec<u8> = (0..PAGE / 8).flat_map(|i| (i as f64).to_ne_bytes()).collect();
    std::io::Write::write_all(&mut file, &numbers).unwrap();
    // SAFETY: the file is private. The mapping beyond its end cannot be read.
    let map = unsafe { MmapOptions::new().len(2 * PAGE).map(&file) }.unwrap();
    let numbers: Vec<f64> = numbers.chunks(8).map(|b| f64::from_ne_bytes(b.try_into().unwrap())).collect();
    let mut ran = 0;
    for (width, n_fields) in (2..7).flat_map(|width| (1..=width.min(5)).map(move |n| (width, n))) {
        let function = sums(width, n_fields);
        let mut kernel = lower_function(&function).unwrap();
        streamline(&mut kernel);
        assert!(vectorise(&mut kernel, Semantics::Algebraic) > 0, "no loop of records of {width} is in lanes");
        let kernel = Arc::new(kernel);
        for level in [Level::Avx2, Level::Avx512].into_iter().filter(|level| level.missing().is_empty()) {
            let options = Options { level: Some(level), ..Options::default() };
            let program = Program::new(kernel.clone(), &options).unwrap();
            for n in 1..40 {
                let (width, n_fields) = (width as usize, n_fields as usize);
                let len = n * width;
                // SAFETY: the slice ends at the end of the first page, and a page starts at a multiple of its size.
                let x = unsafe { std::slice::from_raw_parts(map.as_ptr().cast::<f64>().add(PAGE / 8 - len), len) };
                let sizes = program.bind(&[&[n, width]], &[]).unwrap();
                let mut workspace = Workspace::new(&program, &sizes);
                let mut y = vec![0.0; n];
                program.run(&sizes, &[Slice::Real(x)], &mut [SliceMut::Real(&mut y)], &mut workspace).unwrap();
                let record = |i: usize| &numbers[PAGE / 8 - len + i * width..][width - n_fields..width];
                let expected: Vec<f64> = (0..n).map(|i| record(i).iter().sum()).collect();
                assert_eq!(y, expected, "{n} records of {width}");
                ran += 1;
            }
        }
    }
    assert!(ran >= 39 * 19, "{ran}");
}
