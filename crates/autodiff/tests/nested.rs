//! Nested derivatives: section 3.3 of the paper, the programs of the literature on perturbation
//! confusion (Siskind and Pearlmutter 2005 and 2008; Manzyuk and others 2019), higher orders.

use chainrule_autodiff::{check, expand};
use chainrule_ir::{Block, Builder, Function, Size, Type, Value, VarId};
use chainrule_ops::Op;

/// d/dx body at `x`.
fn d(b: &mut Builder, x: VarId, body: impl FnOnce(&mut Builder, VarId) -> VarId) -> VarId {
    let one = b.real(1.0);
    let dual = b.jvp(&[x], &[one], |b, params| body(b, params[0]));
    b.component(dual, 1)
}

fn function(body: impl FnOnce(&mut Builder, VarId) -> VarId) -> Function {
    let mut b = Builder::new("f");
    let x = b.param("x", Type::Double);
    let result = body(&mut b, x);
    b.finish(result)
}

fn at(function: &Function, x: f64) -> f64 {
    let (_, value) = check::expansion(function, &[x.into()]).expect("right").expect("a value");
    *value.reals()[0]
}

#[test]
fn the_example_of_section_3_3_is_one() {
    // d/dx (x * d/dy (x + y)) = 1 at every point.
    let f = function(|b, x| {
        d(b, x, |b, x| {
            let y = b.real(3.0);
            let inner = d(b, y, |b, y| b.op(Op::Add, &[x, y]));
            b.op(Op::Mul, &[x, inner])
        })
    });
    for x in [-1.0, 0.0, 2.5] {
        assert_eq!(at(&f, x), 1.0);
    }
}

#[test]
fn the_inner_point_may_depend_on_the_outer_variable() {
    // d/dx (x * d/dy (x * y * y) at y = x) = d/dx (x * 2 x x) = 6 x^2
    let f = function(|b, x| {
        d(b, x, |b, x| {
            let inner = d(b, x, |b, y| {
                let square = b.op(Op::Mul, &[y, y]);
                b.op(Op::Mul, &[x, square])
            });
            b.op(Op::Mul, &[x, inner])
        })
    });
    assert_eq!(at(&f, 3.0), 54.0);
}

#[test]
fn an_inner_derivative_by_an_unrelated_value_is_zero() {
    // d/dx (x * d/dy x) = 0
    let f = function(|b, x| {
        d(b, x, |b, x| {
            let inner = d(b, x, |_, _| x);
            b.op(Op::Mul, &[x, inner])
        })
    });
    assert_eq!(at(&f, 3.0), 0.0);
}

#[test]
fn the_inner_direction_may_depend_on_the_outer_variable() {
    // d/dx of the derivative of y^3 at 2 along x^2 = d/dx 12 x^2 = 24 x
    let f = function(|b, x| {
        d(b, x, |b, x| {
            let (two, along) = (b.real(2.0), b.op(Op::Mul, &[x, x]));
            let dual = b.jvp(&[two], &[along], |b, y| {
                let three = b.real(3.0);
                b.op(Op::Pow, &[y[0], three])
            });
            b.component(dual, 1)
        })
    });
    assert_eq!(at(&f, 5.0), 120.0);
}

#[test]
fn both_halves_of_an_inner_dual_are_differentiated() {
    // d/dx (v + t) where (v, t) = (sin, cos) x: cos x - sin x
    let f = function(|b, x| {
        d(b, x, |b, x| {
            let one = b.real(1.0);
            let dual = b.jvp(&[x], &[one], |b, y| b.op(Op::Sin, &[y[0]]));
            let (v, t) = (b.component(dual, 0), b.component(dual, 1));
            b.op(Op::Add, &[v, t])
        })
    });
    let x = 0.7;
    assert_eq!(at(&f, x), Op::Cos.value(&[x]) - Op::Sin.value(&[x]));
}

#[test]
fn three_levels_with_all_variables_mixed() {
    // d/dx d/dy d/dz (x y z)^2 at y = x, z = x + y: d/dx of ...; by hand:
    // d/dz = 2 x^2 y^2 z; at z = x + y: g(x, y) = 2 x^2 y^2 (x + y); d/dy g at y = x:
    // 2 x^2 (2 y (x + y) + y^2) = 2 x^2 (4 x^2 + x^2) = 10 x^4; d/dx = 40 x^3.
    let f = function(|b, x| {
        d(b, x, |b, x| {
            d(b, x, |b, y| {
                let z = b.op(Op::Add, &[x, y]);
                d(b, z, |b, z| {
                    let xy = b.op(Op::Mul, &[x, y]);
                    let xyz = b.op(Op::Mul, &[xy, z]);
                    b.op(Op::Mul, &[xyz, xyz])
                })
            })
        })
    });
    assert_eq!(at(&f, 2.0), 320.0);
}

#[test]
fn a_derivative_inside_a_loop_inside_a_derivative() {
    // d/dx of the fold s <- s + d/dy (y^2 s) at y = x, three times from 1: s = (1 + 2x)^3, s' = 6 (1 + 2x)^2
    let f = function(|b, x| {
        d(b, x, |b, x| {
            let one = b.real(1.0);
            b.fold(Size::constant(3), one, |b, s, _| {
                let slope = d(b, x, |b, y| {
                    let square = b.op(Op::Mul, &[y, y]);
                    b.op(Op::Mul, &[square, s])
                });
                b.op(Op::Add, &[s, slope])
            })
        })
    });
    assert_eq!(at(&f, 1.0), 54.0);
}

#[test]
fn a_loop_whose_state_is_active_inside_and_outside() {
    // d/dx d/dy of fold s <- s * (x + y) from y, twice: y (x + y)^2
    // d/dy = (x + y)^2 + 2 y (x + y); at y = 2x: 9x^2 + 12x^2 = 21 x^2, but x inside is held: d/dx total = 42 x.
    let f = function(|b, x| {
        d(b, x, |b, x| {
            let y = b.op(Op::Add, &[x, x]);
            d(b, y, |b, y| {
                b.fold(Size::constant(2), y, |b, s, _| {
                    let sum = b.op(Op::Add, &[x, y]);
                    b.op(Op::Mul, &[s, sum])
                })
            })
        })
    });
    assert_eq!(at(&f, 1.5), 63.0);
}

#[test]
fn higher_derivatives_of_a_power_with_a_constant_exponent_stay_finite_at_zero() {
    // (x^5)''' = 60 x^2, and the fifth derivative is 120, at 0 too.
    fn nth(b: &mut Builder, n: usize, x: VarId) -> VarId {
        if n == 0 {
            let five = b.real(5.0);
            return b.op(Op::Pow, &[x, five]);
        }
        d(b, x, |b, x| nth(b, n - 1, x))
    }
    for (n, x, expected) in [(3, 2.0, 240.0), (3, 0.0, 0.0), (5, 0.0, 120.0), (5, -1.5, 120.0), (6, 0.0, 0.0)] {
        let f = function(|b, x| nth(b, n, x));
        assert_eq!(at(&f, x), expected, "derivative {n} at {x}");
    }
}

#[test]
fn the_third_derivative_of_every_smooth_unary_operator_is_that_of_the_evaluator() {
    for row in chainrule_ops::ROWS.iter().filter(|row| row.args == [chainrule_ops::Type::Num]) {
        let f = function(|b, x| d(b, x, |b, x| d(b, x, |b, x| d(b, x, |b, x| b.op(row.op, &[x])))));
        for x in [0.3, 1.7, -0.6] {
            check::expansion(&f, &[x.into()]).unwrap_or_else(|e| panic!("{} at {x}: {e}", row.name));
        }
    }
}

#[test]
fn a_lazy_branch_keeps_second_derivatives_finite() {
    // if 0 < x then x * log x else 0: second derivative 1/x, and 0 at -1.
    let f = function(|b, x| {
        d(b, x, |b, x| {
            d(b, x, |b, x| {
                let zero = b.real(0.0);
                let positive = b.op(Op::Lt, &[zero, x]);
                b.if_(
                    positive,
                    |b| {
                        let log = b.op(Op::Log, &[x]);
                        b.op(Op::Mul, &[x, log])
                    },
                    |b| b.real(0.0),
                )
            })
        })
    });
    assert_eq!(at(&f, -1.0), 0.0);
    assert_eq!(at(&f, 4.0), 0.25);
}

/// Returns the derivative of order `order` at `x` of the result of `body`.
fn derivative(b: &mut Builder, order: usize, x: VarId, body: &dyn Fn(&mut Builder, VarId) -> VarId) -> VarId {
    match order {
        0 => body(b, x),
        _ => d(b, x, |b, x| derivative(b, order - 1, x, body)),
    }
}

fn n_statements(block: &chainrule_ir::Block) -> usize {
    let inner = block.stmts.iter().flat_map(|stmt| stmt.expr.blocks());
    block.stmts.len() + inner.map(n_statements).sum::<usize>()
}

#[test]
fn a_tenfold_derivative_is_that_of_the_closed_form() {
    // exp(x/2) sin x is the imaginary part of exp((1/2 + i) x).
    let (x, radius, angle) = (0.3_f64, 1.25_f64.sqrt(), 2.0_f64.atan());
    for order in [1, 4, 7, 10] {
        let f = function(|b, x| {
            derivative(b, order, x, &|b, x| {
                let half = b.real(0.5);
                let scaled = b.op(Op::Mul, &[x, half]);
                let (grown, sine) = (b.op(Op::Exp, &[scaled]), b.op(Op::Sin, &[x]));
                b.op(Op::Mul, &[grown, sine])
            })
        });
        let expected = radius.powi(order as i32) * (x / 2.0).exp() * (x + order as f64 * angle).sin();
        let found = at(&f, x);
        assert!((found - expected).abs() <= 1e-12 * expected.abs(), "order {order}: {found} is not {expected}");
    }
}

#[test]
fn nested_derivatives_do_not_double_with_each_level() {
    type Body = fn(&mut Builder, VarId) -> VarId;
    let bodies: [Body; 3] = [
        |b, x| {
            let (grown, sine) = (b.op(Op::Exp, &[x]), b.op(Op::Sin, &[x]));
            b.op(Op::Mul, &[grown, sine])
        },
        |b, x| {
            let square = b.op(Op::Mul, &[x, x]);
            let (sine, cosine) = (b.op(Op::Sin, &[square]), b.op(Op::Cos, &[x]));
            let grown = b.op(Op::Exp, &[sine]);
            b.op(Op::Mul, &[grown, cosine])
        },
        |b, x| {
            let one = b.real(1.0);
            let square = b.op(Op::Mul, &[x, x]);
            let below = b.op(Op::Add, &[one, square]);
            let tangent = b.op(Op::Tanh, &[x]);
            b.op(Op::Div, &[tangent, below])
        },
    ];
    for (which, body) in bodies.iter().enumerate() {
        let size = |order: usize| {
            let f = function(|b, x| derivative(b, order, x, body));
            n_statements(&chainrule_autodiff::expand(&f).unwrap().body)
        };
        let sizes = [3, 6, 9, 12].map(size);
        // A polynomial of degree at most four.
        assert!(sizes[1] <= 16 * sizes[0] && sizes[3] <= 16 * sizes[1], "body {which}: {sizes:?} statements");
    }
}

fn n_stmts(block: &Block) -> usize {
    block.stmts.iter().map(|stmt| 1 + stmt.expr.blocks().into_iter().map(n_stmts).sum::<usize>()).sum()
}

/// The derivative of order `order` of `body` at `x`.
fn higher(b: &mut Builder, order: usize, x: VarId, body: &dyn Fn(&mut Builder, VarId) -> VarId) -> VarId {
    if order == 0 { body(b, x) } else { d(b, x, |b, x| higher(b, order - 1, x, body)) }
}

/// Tests that the statements of derivatives of `body` grow as a polynomial of the order, and their values at order 3.
fn grows_slowly(body: &dyn Fn(&mut Builder, VarId) -> VarId) {
    let of = |order: usize| function(|b, x| higher(b, order, x, body));
    at(&of(3), 0.7);
    let counts = [4, 8, 16, 32].map(|order| n_stmts(&expand(&of(order)).expect("ordinary code").body));
    for pair in counts.windows(2) {
        assert!(pair[1] < 12 * pair[0], "{counts:?}");
    }
}

#[test]
fn orders_of_products_of_two_elements_cost_a_polynomial() {
    // b = [sin (x i)], sum of b[i] b[3 - i]
    grows_slowly(&|b, x| {
        let array = b.build(4.into(), |b, i| {
            let i = b.to_real(i);
            let product = b.op(Op::Mul, &[x, i]);
            b.op(Op::Sin, &[product])
        });
        b.sum(4.into(), |b, i| {
            let three = b.int(3);
            let j = b.op(Op::Sub, &[three, i]);
            let (p, q) = (b.get(array, i), b.get(array, j));
            b.op(Op::Mul, &[p, q])
        })
    });
}

#[test]
fn orders_of_loops_with_a_state_cost_a_polynomial() {
    grows_slowly(&|b, x| {
        b.fold(5.into(), x, |b, s, _| {
            let product = b.op(Op::Mul, &[s, x]);
            b.op(Op::Sin, &[product])
        })
    });
    // The state is an array, made from copies, and the condition reads it.
    grows_slowly(&|b, x| {
        let init = b.build(2.into(), |_, _| x);
        let zero = b.int(0);
        let last = b.while_(
            60.into(),
            init,
            |b, s| {
                let (first, small) = (b.get(s, zero), b.real(0.1));
                b.op(Op::Lt, &[small, first])
            },
            |b, s| {
                b.build(2.into(), |b, i| {
                    let one = b.int(1);
                    let j = b.op(Op::Sub, &[one, i]);
                    let (p, q) = (b.get(s, i), b.get(s, j));
                    let sine = b.op(Op::Sin, &[p]);
                    b.op(Op::Mul, &[sine, q])
                })
            },
        );
        b.get(last, zero)
    });
}

#[test]
fn orders_with_directions_that_depend_on_the_point_cost_a_polynomial() {
    fn along(b: &mut Builder, order: usize, x: VarId, n: &Size) -> VarId {
        if order == 0 {
            return b.sum(n.clone(), |b, i| {
                let element = b.get(x, i);
                let sine = b.op(Op::Sin, &[element]);
                b.op(Op::Mul, &[sine, element])
            });
        }
        let direction = b.build(n.clone(), |b, i| {
            let (element, half) = (b.get(x, i), b.real(0.5));
            b.op(Op::Mul, &[element, half])
        });
        let dual = b.jvp(&[x], &[direction], |b, x| along(b, order - 1, x[0], n));
        b.component(dual, 1)
    }
    let of = |order: usize| {
        let mut b = Builder::new("f");
        let n = b.size_param("n");
        let n = b.size_of(n);
        let x = b.param("x", Type::array(n.clone(), Type::Double));
        let result = along(&mut b, order, x, &n);
        b.finish(result)
    };
    let three: Value<f64> = Value::Array(vec![0.3.into(), 0.7.into()]);
    check::expansion(&of(3), &[three]).expect("right").expect("a value");
    let counts = [4, 8, 16, 32].map(|order| n_stmts(&expand(&of(order)).expect("ordinary code").body));
    for pair in counts.windows(2) {
        assert!(pair[1] < 12 * pair[0], "{counts:?}");
    }
}

#[test]
fn reverse_modes_through_loops_in_one_another_meet_a_limit() {
    fn nested(b: &mut Builder, order: usize, x: VarId, n: &Size) -> VarId {
        let zero = b.int(0);
        if order == 0 {
            let last = b.fold(4.into(), x, |b, s, _| {
                b.build(n.clone(), |b, k| {
                    let element = b.get(s, k);
                    b.op(Op::Sin, &[element])
                })
            });
            return b.get(last, zero);
        }
        let one = b.real(1.0);
        let parts = b.vjp(&[x], one, |b, x| nested(b, order - 1, x[0], n));
        let gradient = b.component(parts, 1);
        b.get(gradient, zero)
    }
    let of = |order: usize| {
        let mut b = Builder::new("f");
        let n = b.size_param("n");
        let n = b.size_of(n);
        let x = b.param("x", Type::array(n.clone(), Type::Double));
        let result = nested(&mut b, order, x, &n);
        expand(&b.finish(result))
    };
    assert!(of(3).is_ok());
    let messages = of(30).expect_err("too long");
    assert_eq!(messages.iter().next().map(|message| &*message.title), Some("a derivative of derivatives is too long"));
}
