//! Every rule on a program written for it: it applies, and both sides compute the same value, at sizes 0, 1 and more,
//! and, if it is exact, with infinities, NaN and zeros of both signs, bit for bit.

use chainrule_ir::{Builder, Expr, Function, Size, Sizes, StateLoop, Type, Value, VarId, evaluate, print, verify};
use chainrule_ops::{F64, Op};
use chainrule_rewrite::engine::apply;
use chainrule_rewrite::{Options, check, rules};

/// Builder of programs.
struct Make {
    b: Builder,
    n: Size,
    k: Size,
    /// [n]Double.
    v: VarId,
    w: VarId,
    /// [n][k]Double.
    m: VarId,
    /// Double.
    x: VarId,
    y: VarId,
    /// Int.
    i: VarId,
    j: VarId,
    /// Bool.
    c: VarId,
}

fn program(body: impl FnOnce(&mut Make) -> VarId) -> Function {
    let mut b = Builder::new("f");
    let (n, k) = (b.size_param("n"), b.size_param("k"));
    let (n, k) = (b.size_of(n), b.size_of(k));
    let vector = Type::array(n.clone(), Type::Double);
    let matrix = Type::array(n.clone(), Type::array(k.clone(), Type::Double));
    let v = b.param("v", vector.clone());
    let w = b.param("w", vector);
    let m = b.param("m", matrix);
    let (x, y) = (b.param("x", Type::Double), b.param("y", Type::Double));
    let (i, j) = (b.param("i", Type::Int), b.param("j", Type::Int));
    let c = b.param("c", Type::Bool);
    let mut make = Make { b, n, k, v, w, m, x, y, i, j, c };
    let result = body(&mut make);
    make.b.finish(result)
}

impl Make {
    fn op(&mut self, op: Op, args: &[VarId]) -> VarId {
        self.b.op(op, args)
    }

    fn real(&mut self, value: f64) -> VarId {
        self.b.real(value)
    }

    /// `[condition] value`, as a selection.
    fn mask(&mut self, condition: VarId, value: VarId) -> VarId {
        let zero = self.b.real(0.0);
        self.b.op(Op::Select, &[condition, value, zero])
    }

    /// `[index == at] value`.
    fn hot(&mut self, index: VarId, at: VarId, value: VarId) -> VarId {
        let condition = self.b.op(Op::Eq, &[index, at]);
        self.mask(condition, value)
    }

    /// `if c then array else 0`.
    fn masked(&mut self, array: VarId) -> VarId {
        let ty = self.b.ty(array).clone();
        let c = self.c;
        self.b.if_(c, |_| array, |b| b.zero(ty))
    }

    fn vector(&mut self, element: impl FnOnce(&mut Self, VarId) -> VarId) -> VarId {
        self.array(self.n.clone(), element)
    }

    fn array(&mut self, size: Size, element: impl FnOnce(&mut Self, VarId) -> VarId) -> VarId {
        let index = self.b.fresh(Type::Int);
        self.b.push_block();
        let result = element(self, index);
        let body = self.b.pop_block(result);
        self.b.compute(Expr::Build { size, index, body })
    }

    fn sum(&mut self, count: Size, term: impl FnOnce(&mut Self, VarId) -> VarId) -> VarId {
        let index = self.b.fresh(Type::Int);
        self.b.push_block();
        let result = term(self, index);
        let body = self.b.pop_block(result);
        self.b.compute(Expr::Sum { count, index, body })
    }

    fn fold(&mut self, count: Size, init: VarId, step: impl FnOnce(&mut Self, VarId, VarId) -> VarId) -> VarId {
        let (index, state) = (self.b.fresh(Type::Int), self.b.fresh(self.b.ty(init).clone()));
        self.b.push_block();
        let result = step(self, state, index);
        let body = self.b.pop_block(result);
        self.b.compute(Expr::Fold(StateLoop { count, index, state, init, body }))
    }

    fn general(&mut self, count: Size, init: VarId, step: impl FnOnce(&mut Self, VarId, VarId) -> [VarId; 3]) -> VarId {
        let (index, state) = (self.b.fresh(Type::Int), self.b.fresh(self.b.ty(init).clone()));
        self.b.push_block();
        let parts = step(self, state, index);
        let result = self.b.tuple(&parts);
        let body = self.b.pop_block(result);
        self.b.compute(Expr::Loop(StateLoop { count, index, state, init, body }))
    }

    fn get(&mut self, array: VarId, index: VarId) -> VarId {
        self.b.get_proved(array, index)
    }

    /// Returns the sum over `v` of sums over so many of `w` of products, each at its own index.
    fn products(
        &mut self,
        count: impl FnOnce(&Self, VarId) -> Size,
        place: impl FnOnce(VarId, VarId) -> VarId,
    ) -> VarId {
        self.sum(self.n.clone(), |p, i| {
            let x = p.get(p.v, i);
            p.sum(count(p, i), |p, j| {
                let y = p.get(p.w, j);
                let product = p.op(Op::Mul, &[x, y]);
                p.one_hot(place(i, j), product)
            })
        })
    }

    /// Returns the sum over `v` of vectors over `w`.
    fn vectors(&mut self, element: impl FnOnce(&mut Self, VarId, VarId) -> VarId) -> VarId {
        self.sum(self.n.clone(), |p, i| {
            let x = p.get(p.v, i);
            p.vector(|p, j| {
                let y = p.get(p.w, j);
                element(p, x, y)
            })
        })
    }

    /// Program on a lower triangle with elements w[i] - w[j], the transpose times the vector of `number` of w[i].
    fn transposed(&mut self, number: impl FnOnce(&mut Self, VarId) -> VarId) -> VarId {
        self.sum(self.n.clone(), |p, i| {
            let row = p.get(p.w, i);
            let x = number(p, row);
            p.sum(Size::var(i).add(&Size::constant(1)), |p, j| {
                let column = p.get(p.w, j);
                let q = p.op(Op::Sub, &[row, column]);
                let product = p.op(Op::Mul, &[q, x]);
                p.one_hot(j, product)
            })
        })
    }

    fn one_hot(&mut self, index: VarId, value: VarId) -> VarId {
        let n = self.n.clone();
        self.b.one_hot_proved(n, index, value)
    }
}

/// Returns programs for each rule.
fn programs(rule: &str) -> Vec<Function> {
    use Op::{Add, And, Cos, Div, Eq, Exp, Le, Lt, MaskedMul, Mul, Neg, Not, Or, Pow, Select, Sin, StrongMul, Sub};
    let on_literals = |op: Op, a: f64, c: f64| {
        program(|p| {
            let args = [p.real(a), p.real(c)];
            p.op(op, &args)
        })
    };
    let with = |op: Op, c: f64, swapped: bool| {
        program(|p| {
            let (x, c) = (p.x, p.real(c));
            p.op(op, &if swapped { [c, x] } else { [x, c] })
        })
    };
    match rule {
        "constants" => vec![
            on_literals(Add, 0.1, 0.2),
            on_literals(Div, 1.0, 0.0),
            program(|p| {
                let (seven, three) = (p.b.int(-7), p.b.int(3));
                let rest = p.op(Op::Mod, &[seven, three]);
                p.b.to_real(rest)
            }),
            program(|p| {
                let args = [p.real(f64::NAN), p.real(1.0)];
                p.op(Le, &args)
            }),
        ],
        "neutral" => {
            let mut all: Vec<Function> =
                [(Mul, 1.0), (Mul, -1.0), (Div, 1.0), (Div, -1.0), (Pow, 1.0), (Pow, 0.0), (Sub, 0.0), (Add, -0.0)]
                    .map(|(op, c)| with(op, c, false))
                    .into();
            all.extend([with(Mul, 1.0, true), with(Mul, -1.0, true), with(Add, -0.0, true)]);
            all.extend([(Add, false), (Add, true), (Sub, false)].map(|(op, swapped)| {
                program(|p| {
                    let (x, y) = (p.x, p.op(Neg, &[p.y]));
                    p.op(op, &if swapped { [y, x] } else { [x, y] })
                })
            }));
            all.push(program(|p| {
                let x = p.op(Neg, &[p.x]);
                p.op(Neg, &[x])
            }));
            all
        }
        "zero" => {
            let mut all: Vec<Function> =
                [(Add, false), (Add, true), (Sub, false), (Sub, true), (Mul, false), (Mul, true), (Div, true)]
                    .map(|(op, swapped)| with(op, 0.0, swapped))
                    .into();
            all.push(program(|p| p.op(Sub, &[p.x, p.x])));
            all
        }
        "double" => vec![program(|p| p.op(Add, &[p.x, p.x]))],
        "common-factor" => {
            let of = |outer: Op, inner: Op, left: [usize; 2], right: [usize; 2]| {
                program(|p| {
                    let third = p.op(Sin, &[p.x]);
                    let numbers = [p.x, p.y, third];
                    let [left, right] = [left, right].map(|at| p.op(inner, &at.map(|k| numbers[k])));
                    p.op(outer, &[left, right])
                })
            };
            let mut all = vec![of(Add, Div, [1, 0], [2, 0]), of(Sub, Div, [2, 1], [0, 1])];
            for op in [Add, Sub] {
                let places = [([0, 1], [0, 2]), ([0, 1], [2, 0]), ([1, 0], [0, 2]), ([1, 0], [2, 0]), ([1, 1], [1, 2])];
                all.extend(places.map(|(left, right)| of(op, Mul, left, right)));
            }
            // In each step of a loop.
            all.push(program(|p| {
                p.vector(|p, i| {
                    let (x, y) = (p.get(p.v, i), p.get(p.w, i));
                    let (sine, cosine) = (p.op(Sin, &[x]), p.op(Cos, &[x]));
                    let products = [sine, cosine].map(|z| p.op(Mul, &[y, z]));
                    p.op(Sub, &products)
                })
            }));
            all
        }
        "cancel" => vec![
            program(|p| p.op(Div, &[p.x, p.x])),
            program(|p| {
                let quotient = p.op(Div, &[p.y, p.x]);
                p.op(Mul, &[quotient, p.x])
            }),
        ],
        "masked-constant" => {
            [(MaskedMul, 0.0), (MaskedMul, -2.0), (StrongMul, 0.0)].map(|(op, c)| with(op, c, true)).into()
        }
        "strong-product" => {
            let mut all = vec![with(MaskedMul, 3.0, false), with(StrongMul, -2.0, false), with(StrongMul, 2.0, true)];
            all.extend([MaskedMul, StrongMul].map(|op| {
                program(|p| {
                    let negative = p.op(Neg, &[p.x]);
                    p.op(op, &[negative, p.y])
                })
            }));
            all.push(program(|p| {
                let quotient = p.op(Div, &[p.y, p.x]);
                p.op(MaskedMul, &[p.x, quotient])
            }));
            all
        }
        "reciprocal" => vec![program(|p| {
            let args = [p.real(1.0), p.x];
            let reciprocal = p.op(Div, &args);
            p.op(Div, &[reciprocal, p.x])
        })],
        "power" => [2.0, 3.0, 5.0, 8.0, 0.5, -1.0, -2.5].map(|exponent| with(Pow, exponent, false)).into(),
        "compare-integers" => [Lt, Le, Eq]
            .iter()
            .flat_map(|op| [false, true].map(|swapped| (*op, swapped)))
            .map(|(op, swapped)| {
                program(|p| {
                    let n = p.b.size(p.n.clone());
                    p.vector(|p, i| {
                        let args = if swapped { [n, i] } else { [i, n] };
                        let holds = p.op(op, &args);
                        p.mask(holds, p.x)
                    })
                })
            })
            .collect(),
        "connectives" => {
            let mut all: Vec<Function> = [(And, true), (And, false), (Or, true), (Or, false)]
                .map(|(op, value)| {
                    program(|p| {
                        let (c, known) = (p.c, p.b.bool(value));
                        p.op(op, &[c, known])
                    })
                })
                .into();
            all.extend([And, Or].map(|op| program(|p| p.op(op, &[p.c, p.c]))));
            all.push(program(|p| {
                let c = p.op(Not, &[p.c]);
                p.op(Not, &[c])
            }));
            all
        }
        "select" => vec![
            program(|p| p.op(Select, &[p.c, p.x, p.x])),
            program(|p| {
                let c = p.b.bool(false);
                p.op(Select, &[c, p.x, p.y])
            }),
        ],
        "mask-product" => [Mul, Div, Neg]
            .map(|op| {
                program(|p| {
                    let masked = p.mask(p.c, p.x);
                    let args = [masked, p.y];
                    p.op(op, &args[..op.arity()])
                })
            })
            .into(),
        "mask-sum" => [Add, Sub]
            .map(|op| {
                program(|p| {
                    let args = [p.mask(p.c, p.x), p.mask(p.c, p.y)];
                    p.op(op, &args)
                })
            })
            .into(),
        "prove-index" => vec![program(|p| {
            p.vector(|p, i| {
                let (n, one) = (p.b.size(p.n.clone()), p.b.int(1));
                let last = p.op(Sub, &[n, one]);
                let mirrored = p.op(Sub, &[last, i]);
                p.b.get(p.v, mirrored)
            })
        })],
        "get-array" => vec![
            program(|p| {
                let (array, one) = (p.b.array(&[p.x, p.y]), p.b.int(1));
                p.get(array, one)
            }),
            program(|p| {
                let array = p.b.array(&[p.x]);
                p.sum(Size::constant(1), |p, i| p.get(array, i))
            }),
        ],
        "fuse" => vec![program(|p| {
            let copy = p.vector(|p, i| p.get(p.v, i));
            p.vector(|p, i| {
                let element = p.get(copy, i);
                p.op(Sin, &[element])
            })
        })],
        "fuse-rows" => vec![
            program(|p| {
                let (n, k) = (p.n.clone(), p.k.clone());
                let m = p.m;
                let transposed = p.b.build(k.clone(), |b, j| {
                    b.build(n, |b, i| {
                        let row = b.get_proved(m, i);
                        b.get_proved(row, j)
                    })
                });
                p.vector(|p, i| {
                    let transposed_row = |b: &mut Builder, j: VarId| {
                        let row = b.get_proved(transposed, j);
                        b.get_proved(row, i)
                    };
                    p.b.sum(k, transposed_row)
                })
            }),
            program(|p| {
                let columns = p.vector(|p, i| {
                    let x = p.get(p.v, i);
                    p.b.array(&[x])
                });
                p.vector(|p, i| {
                    let (column, zero) = (p.get(columns, i), p.b.int(0));
                    p.get(column, zero)
                })
            }),
        ],
        "get-one-hot" => vec![
            program(|p| {
                p.vector(|p, i| {
                    let hot = p.one_hot(i, p.x);
                    p.sum(p.n.clone(), |p, j| {
                        let (element, y) = (p.get(hot, j), p.get(p.v, j));
                        p.op(Mul, &[element, y])
                    })
                })
            }),
            program(|p| {
                let zero = p.b.zero(p.b.ty(p.m).clone());
                p.vector(|p, i| p.get(zero, i))
            }),
        ],
        "get-plus" => vec![program(|p| {
            let both = p.b.plus(p.v, p.w);
            p.vector(|p, i| p.get(both, i))
        })],
        "get-mask" => vec![
            program(|p| {
                let masked = p.masked(p.v);
                p.vector(|p, i| p.get(masked, i))
            }),
            program(|p| {
                p.vector(|p, i| {
                    let (c, x) = (p.c, p.x);
                    let ty = p.b.ty(p.v).clone();
                    let n = p.n.clone();
                    let hot = p.b.if_(c, |b| b.one_hot_proved(n, i, x), |b| b.zero(ty));
                    p.sum(p.n.clone(), |p, j| p.get(hot, j))
                })
            }),
        ],
        "component" => vec![program(|p| {
            let pair = p.b.tuple(&[p.x, p.v]);
            p.b.component(pair, 1)
        })],
        "fuse-component" => vec![program(|p| {
            let pairs = p.vector(|p, i| {
                let (a, c) = (p.get(p.v, i), p.get(p.w, i));
                let expensive = p.op(Sin, &[c]);
                p.b.tuple(&[a, expensive])
            });
            p.vector(|p, i| {
                let pair = p.get(pairs, i);
                p.b.component(pair, 0)
            })
        })],
        "same-tuple" => vec![program(|p| {
            let pair = p.b.tuple(&[p.x, p.y]);
            p.fold(p.n.clone(), pair, |p, state, _| {
                let parts = [p.b.component(state, 0), p.b.component(state, 1)];
                p.b.tuple(&parts)
            })
        })],
        "if-same" => vec![program(|p| {
            let (c, x) = (p.c, p.x);
            p.b.if_(c, |b| b.op(Sin, &[x]), |b| b.op(Sin, &[x]))
        })],
        "if-not" => vec![program(|p| {
            let (c, x, y) = (p.op(Not, &[p.c]), p.x, p.y);
            p.b.if_(c, |b| b.op(Sin, &[x]), |b| b.op(Neg, &[y]))
        })],
        "if-truth" => [(Some(true), Some(false)), (Some(false), Some(true)), (None, Some(false)), (Some(true), None)]
            .map(|(then, otherwise)| {
                program(|p| {
                    let (c, other) = (p.c, p.op(Lt, &[p.x, p.y]));
                    let side = |value: Option<bool>| move |b: &mut Builder| value.map_or(other, |value| b.bool(value));
                    p.b.if_(c, side(then), side(otherwise))
                })
            })
            .into(),
        "if-select" => vec![program(|p| {
            let (c, x, y) = (p.c, p.x, p.y);
            p.b.if_(c, |_| x, |_| y)
        })],
        "flat-if" => vec![program(|p| {
            let (c, x, y, i, j, v, w) = (p.c, p.x, p.y, p.i, p.j, p.v, p.w);
            let value = |b: &mut Builder, x: VarId, v: VarId, i: VarId| {
                let none = b.tuple(&[]);
                let inner = b.tuple(&[x, v]);
                let inner = b.tuple(&[inner, none]);
                b.tuple(&[i, inner, x])
            };
            p.b.if_(c, |b| value(b, x, v, i), |b| value(b, y, w, j))
        })],
        "if-one-hot" => {
            let both = |p: &mut Make, i: VarId, [x, y]: [VarId; 2]| {
                let (c, n, ty) = (p.c, p.n.clone(), p.b.ty(p.v).clone());
                let hot = |b: &mut Builder, x: VarId| {
                    let x = b.op(Exp, &[x]);
                    b.one_hot_proved(n.clone(), i, x)
                };
                let none = |b: &mut Builder, condition: VarId| b.if_(condition, |b| hot(b, x), |b| b.zero(ty.clone()));
                // A condition decided by no loop, and one that selects an index where it does not hold.
                let element = p.get(p.v, i);
                let (own, asked) = (p.op(Lt, &[element, p.x]), p.op(Eq, &[i, p.i]));
                let masks = [none(&mut p.b, own), p.b.if_(asked, |b| b.zero(ty.clone()), |b| hot(b, x))];
                (masks, p.b.if_(c, |b| hot(b, x), |b| hot(b, y)))
            };
            vec![
                program(|p| p.vector(|p, i| both(p, i, [p.x, p.y]).0[0])),
                program(|p| p.vector(|p, i| both(p, i, [p.x, p.y]).0[1])),
                program(|p| p.sum(p.n.clone(), |p, i| both(p, i, [p.x, p.y]).1)),
                // A field of a tuple with other fields.
                program(|p| {
                    p.sum(p.n.clone(), |p, i| {
                        let (c, n, [v, w], [x, y]) = (p.c, p.n.clone(), [p.v, p.w], [p.x, p.y]);
                        let fields = |b: &mut Builder, array: VarId, x: VarId| {
                            let y = b.op(Sin, &[x]);
                            let hot = b.one_hot_proved(n.clone(), i, y);
                            b.tuple(&[array, hot, y])
                        };
                        p.b.if_(c, |b| fields(b, v, x), |b| fields(b, w, y))
                    })
                }),
            ]
        }
        "if-one-hots" => {
            let sums = |p: &mut Make, i: VarId, j: VarId| {
                let (c, n, v, [x, y]) = (p.c, p.n.clone(), p.v, [p.x, p.y]);
                let plus = |b: &mut Builder, rest: VarId, places: &[VarId], x: VarId| {
                    let mut sum = rest;
                    for place in places {
                        let hot = b.one_hot_proved(n.clone(), *place, x);
                        sum = b.plus(sum, hot);
                    }
                    sum
                };
                let zero = p.b.zero(p.b.ty(p.v).clone());
                let first = p.b.if_(c, |b| plus(b, v, &[i, j, i], x), |b| plus(b, zero, &[j], y));
                let second = p.b.if_(c, |b| plus(b, zero, &[i, j], y), |_| zero);
                p.b.tuple(&[first, second])
            };
            vec![program(|p| {
                p.sum(p.n.clone(), |p, i| {
                    let other = p.b.size(p.n.sub(&Size::var(i)).sub(&Size::constant(1)));
                    sums(p, i, other)
                })
            })]
        }
        "same-array" => vec![
            program(|p| p.vector(|p, i| p.get(p.v, i))),
            program(|p| {
                let k = p.k.clone();
                p.vector(|p, i| {
                    let row = p.get(p.m, i);
                    p.b.build(k, |b, j| b.get_proved(row, j))
                })
            }),
        ],
        "build-zero" => vec![program(|p| p.vector(|p, _| p.real(0.0)))],
        "build-one" => vec![program(|p| {
            let x = p.x;
            p.b.build(Size::constant(1), |b, i| {
                let i = b.to_real(i);
                b.op(Add, &[x, i])
            })
        })],
        "build-in-mask" => vec![program(|p| {
            p.vector(|p, i| {
                let x = p.get(p.v, i);
                p.mask(p.c, x)
            })
        })],
        "build-one-hot" => vec![program(|p| {
            p.vector(|p, at| {
                p.vector(|p, i| {
                    let x = p.get(p.v, i);
                    p.hot(i, at, x)
                })
            })
        })],
        // A number and its tangent; elements and theirs, for a direction that is a column, or one element.
        "fold-of-builds" => vec![
            program(|p| {
                p.vector(|p, d| {
                    let t = p.get(p.w, d);
                    let init = p.b.tuple(&[p.x, t]);
                    let last = p.fold(p.k.clone(), init, |p, s, i| {
                        let [y, t] = [0, 1].map(|k| p.b.component(s, k));
                        let (sine, cosine, i) = (p.op(Sin, &[y]), p.op(Cos, &[y]), p.b.to_real(i));
                        let (t, y) = (p.op(Mul, &[cosine, t]), p.op(Add, &[sine, i]));
                        p.b.tuple(&[y, t])
                    });
                    let [y, t] = [0, 1].map(|k| p.b.component(last, k));
                    p.op(Sub, &[t, y])
                })
            }),
            program(|p| {
                let (k, m, v) = (p.k.clone(), p.m, p.v);
                let d = p.b.fresh(Type::Int);
                p.b.push_block();
                let init = p.vector(|p, i| {
                    let row = p.get(m, i);
                    let (y, t) = (p.get(v, i), p.get(row, d));
                    p.b.tuple(&[y, t])
                });
                let first = p.b.op(Op::Eq, &[d, p.i]);
                let last = p.fold(Size::constant(4), init, |p, s, _| {
                    p.vector(|p, i| {
                        let last = p.n.sub(&Size::constant(1)).sub(&Size::var(i));
                        let j = p.b.size(last);
                        let [here, there] = [i, j].map(|i| p.get(s, i));
                        let [y, z] = [here, there].map(|pair| p.b.component(pair, 0));
                        let [t, u] = [here, there].map(|pair| p.b.component(pair, 1));
                        let e = p.op(Exp, &[y]);
                        let (next, product) = (p.op(Sub, &[e, z]), p.op(Mul, &[e, t]));
                        let (moved, one) = (p.op(Sub, &[product, u]), p.real(1.0));
                        let more = p.mask(first, one);
                        let moved = p.op(Add, &[moved, more]);
                        p.b.tuple(&[next, moved])
                    })
                });
                let tangents = p.vector(|p, i| {
                    let pair = p.get(last, i);
                    p.b.component(pair, 1)
                });
                let body = p.b.pop_block(tangents);
                p.b.compute(Expr::Build { size: k, index: d, body })
            }),
        ],
        "split-build" => vec![program(|p| {
            p.vector(|p, i| {
                let (a, c) = (p.get(p.v, i), p.get(p.w, i));
                let parts = [p.op(Sin, &[a]), p.op(Op::Exp, &[c])];
                p.b.tuple(&parts)
            })
        })],
        "sum-of-none" => vec![
            program(|p| p.sum(Size::constant(-2), |p, _| p.x)),
            program(|p| p.sum(p.n.clone(), |p, _| p.real(0.0))),
            program(|p| p.sum(Size::zero(), |p, _| p.v)),
        ],
        "sum-of-mask" => vec![
            program(|p| {
                p.sum(p.n.clone(), |p, i| {
                    let x = p.get(p.v, i);
                    p.hot(i, p.i, x)
                })
            }),
            program(|p| {
                p.sum(p.n.clone(), |p, i| {
                    let (two, x) = (p.b.int(2), p.get(p.v, i));
                    let shifted = p.op(Sub, &[two, i]);
                    p.hot(shifted, p.j, x)
                })
            }),
            program(|p| {
                p.sum(p.n.clone(), |p, i| {
                    let x = p.get(p.v, i);
                    let (here, also) = (p.op(Eq, &[i, p.i]), p.op(And, &[p.c, p.c]));
                    let both = p.op(And, &[also, here]);
                    p.mask(both, x)
                })
            }),
        ],
        "sum-in-mask" => vec![program(|p| {
            p.sum(p.n.clone(), |p, i| {
                let x = p.get(p.v, i);
                p.mask(p.c, x)
            })
        })],
        "unroll-sum" => vec![program(|p| {
            p.sum(Size::constant(3), |p, i| {
                let i = p.b.to_real(i);
                p.op(Mul, &[p.x, i])
            })
        })],
        "sum-of-constant" => vec![program(|p| p.sum(p.n.clone(), |p, _| p.x))],
        "sum-of-factor" => vec![
            program(|p| {
                p.sum(p.n.clone(), |p, i| {
                    let element = p.get(p.v, i);
                    let scaled = p.op(Mul, &[p.x, element]);
                    let (negative, other) = (p.op(Neg, &[scaled]), p.get(p.w, i));
                    let product = p.op(Mul, &[negative, other]);
                    p.op(Mul, &[product, p.y])
                })
            }),
            program(|p| {
                p.sum(p.n.clone(), |p, i| {
                    let element = p.get(p.v, i);
                    p.op(Neg, &[element])
                })
            }),
            // Inside the loop over i, the sum over j has terms.
            program(|p| {
                p.vector(|p, i| {
                    let divisor = p.get(p.w, i);
                    p.sum(p.n.clone(), |p, j| {
                        let x = p.get(p.v, j);
                        p.op(Div, &[x, divisor])
                    })
                })
            }),
        ],
        "sum-of-sum" => [Add, Sub]
            .map(|op| {
                program(|p| {
                    p.sum(p.n.clone(), |p, i| {
                        let (x, y) = (p.get(p.v, i), p.get(p.w, i));
                        let masked = p.hot(i, p.i, y);
                        p.op(op, &[x, masked])
                    })
                })
            })
            .into(),
        "split-sum" => vec![program(|p| {
            p.sum(p.n.clone(), |p, i| {
                let x = p.get(p.v, i);
                let parts = [p.op(Sin, &[x]), x, p.w];
                p.b.tuple(&parts)
            })
        })],
        "sum-of-plus" => vec![program(|p| {
            p.sum(p.n.clone(), |p, i| {
                let x = p.get(p.v, i);
                let hot = p.one_hot(i, x);
                p.b.plus(hot, p.w)
            })
        })],
        "sum-in-one-hot" => vec![program(|p| {
            p.vector(|p, at| {
                p.sum(p.n.clone(), |p, i| {
                    let x = p.get(p.v, i);
                    p.one_hot(at, x)
                })
            })
        })],
        "sum-of-one-hot" => vec![
            program(|p| {
                p.sum(p.n.clone(), |p, i| {
                    let x = p.get(p.v, i);
                    p.one_hot(i, x)
                })
            }),
            program(|p| {
                p.sum(p.n.clone(), |p, i| {
                    let (x, n, one) = (p.get(p.v, i), p.b.size(p.n.clone()), p.b.int(1));
                    let last = p.op(Sub, &[n, one]);
                    let mirrored = p.op(Sub, &[last, i]);
                    p.one_hot(mirrored, x)
                })
            }),
        ],
        "sum-of-rotated" => [3, -1]
            .map(|by| {
                program(|p| {
                    p.sum(p.n.clone(), |p, i| {
                        let (x, n) = (p.get(p.v, i), p.b.size(p.n.clone()));
                        let turned = p.b.size(Size::var(i).add(&Size::constant(by)));
                        let at = p.op(Op::Mod, &[turned, n]);
                        p.one_hot(at, x)
                    })
                })
            })
            .to_vec(),
        "sum-of-clamped" => [(Some(0), false, -1), (None, true, 1), (Some(0), true, 2), (Some(0), true, -2)]
            .map(|(low, high, by)| {
                program(|p| {
                    p.sum(p.n.clone(), |p, i| {
                        // Thirds are rounded, so that the order of additions at a border shows.
                        let (x, three) = (p.get(p.v, i), p.real(3.0));
                        let x = p.op(Div, &[x, three]);
                        let mut at = p.b.size(Size::var(i).add(&Size::constant(by)));
                        if let Some(low) = low {
                            let low = p.b.int(low);
                            at = p.op(Op::Max, &[low, at]);
                        }
                        if high {
                            let last = p.b.size(p.n.sub(&Size::constant(1)));
                            at = p.op(Op::Min, &[at, last]);
                        }
                        p.one_hot(at, x)
                    })
                })
            })
            .to_vec(),
        "sum-of-guarded" => [true, false]
            .map(|first| {
                program(|p| {
                    p.sum(p.n.clone(), |p, i| {
                        let (x, zero) = (p.get(p.v, i), p.b.int(0));
                        let last = p.b.size(p.n.sub(&Size::constant(1)));
                        let at_border = p.op(Eq, &[i, if first { zero } else { last }]);
                        let by = Size::constant(if first { -1 } else { 1 });
                        let (n, ty) = (p.n.clone(), p.b.ty(p.v).clone());
                        p.b.if_(
                            at_border,
                            |b| b.zero(ty.clone()),
                            |b| {
                                let at = b.size(Size::var(i).add(&by));
                                b.one_hot_proved(n.clone(), at, x)
                            },
                        )
                    })
                })
            })
            .to_vec(),
        "sum-of-linear" => vec![
            // An outer product, whose rows share a factor.
            program(|p| p.vectors(|p, x, y| p.op(Mul, &[x, y]))),
            // A field of a tuple: the transpose of a lower triangle times a vector, negated.
            program(|p| {
                p.sum(p.n.clone(), |p, i| {
                    let x = p.get(p.v, i);
                    let product = p.transposed(|p, row| {
                        let s = p.op(Sub, &[x, row]);
                        p.op(Sin, &[s])
                    });
                    let negated = p.vector(|p, j| {
                        let y = p.get(product, j);
                        p.op(Neg, &[y])
                    });
                    let both = p.b.tuple(&[x, negated]);
                    p.b.tuple(&[both, x])
                })
            }),
            // Quotients, with at least one iteration.
            program(|p| {
                p.sum(Size::constant(5), |p, i| {
                    let i = p.b.to_real(i);
                    let x = p.op(Sub, &[i, p.x]);
                    p.vector(|p, j| {
                        let y = p.get(p.w, j);
                        p.op(Div, &[x, y])
                    })
                })
            }),
            // In an outer loop that determines the number of iterations, plus a product with the same number.
            program(|p| {
                p.vector(|p, at| {
                    let count = Size::var(at).add(&Size::constant(1));
                    p.sum(count, |p, i| {
                        let x = p.get(p.v, i);
                        let product = p.transposed(|p, row| p.op(Mul, &[x, row]));
                        let hot = p.one_hot(at, x);
                        p.b.plus(product, hot)
                    })
                })
            }),
        ],
        "sum-of-repeated" => vec![
            program(|p| {
                let k = p.k.clone();
                p.sum(p.n.clone(), |p, i| {
                    let x = p.get(p.v, i);
                    let x = p.op(Sin, &[x]);
                    p.b.build(k, |_, _| x)
                })
            }),
            program(|p| {
                let k = p.k.clone();
                p.sum(p.n.clone(), |p, i| {
                    let row = p.get(p.m, i);
                    p.b.build(k, |_, _| row)
                })
            }),
        ],
        "interchange" => vec![
            program(|p| {
                let k = p.k.clone();
                p.sum(p.n.clone(), |p, i| {
                    let (row, x) = (p.get(p.m, i), p.get(p.v, i));
                    p.b.build(k, |b, j| {
                        let y = b.get_proved(row, j);
                        b.op(Mul, &[x, y])
                    })
                })
            }),
            program(|p| p.sum(p.n.clone(), |p, i| p.get(p.m, i))),
        ],
        "fold-of-none" => vec![
            program(|p| p.fold(Size::constant(-1), p.x, |p, s, _| p.op(Sin, &[s]))),
            program(|p| p.fold(p.n.clone(), p.x, |_, s, _| s)),
        ],
        "fold-once" => vec![program(|p| {
            p.fold(p.n.clone(), p.x, |p, s, i| {
                let condition = p.op(Eq, &[i, p.i]);
                let v = p.v;
                p.b.if_(
                    condition,
                    |b| {
                        let x = b.get_proved(v, i);
                        b.op(Sub, &[x, s])
                    },
                    |_| s,
                )
            })
        })],
        "unroll-fold" => vec![program(|p| {
            p.fold(Size::constant(3), p.x, |p, s, i| {
                let i = p.b.to_real(i);
                p.op(Sub, &[i, s])
            })
        })],
        "fold-to-sum" => vec![
            program(|p| {
                let zero = p.real(0.0);
                p.fold(p.n.clone(), zero, |p, s, i| {
                    let x = p.get(p.v, i);
                    p.op(Add, &[x, s])
                })
            }),
            program(|p| {
                let zero = p.b.zero(p.b.ty(p.v).clone());
                p.fold(p.n.clone(), zero, |p, s, i| {
                    let x = p.get(p.w, i);
                    let hot = p.one_hot(i, x);
                    p.b.plus(s, hot)
                })
            }),
        ],
        "split-fold" => {
            // Of independent fields, one that no iteration of the outer loop changes.
            let recurrences = |shared: bool| {
                program(|p| {
                    p.vector(|p, j| {
                        let half = p.real(0.5);
                        let (y, init) = (p.get(p.w, j), p.b.tuple(&[p.x, half, p.y]));
                        let last = p.fold(p.n.clone(), init, |p, s, i| {
                            let [a, b, c] = [0, 1, 2].map(|k| p.b.component(s, k));
                            let x = p.get(p.v, i);
                            let sine = p.op(Sin, &[x]);
                            let (first, z) = (p.op(Mul, &[a, sine]), p.op(Sub, &[c, y]));
                            let (b, c) = (p.op(Mul, &[b, z]), p.op(Mul, &[c, if shared { sine } else { x }]));
                            p.b.tuple(&[first, b, c])
                        });
                        let [a, b, c] = [0, 1, 2].map(|k| p.b.component(last, k));
                        let rest = p.op(Mul, &[b, c]);
                        p.op(Add, &[a, rest])
                    })
                })
            };
            vec![
                recurrences(false),
                recurrences(true),
                program(|p| {
                    let zero = p.real(0.0);
                    let init = p.b.tuple(&[zero, p.x, p.y]);
                    p.fold(p.n.clone(), init, |p, s, i| {
                        let parts = [0, 1, 2].map(|k| p.b.component(s, k));
                        let x = p.get(p.v, i);
                        let (sum, other) = (p.op(Add, &[parts[0], x]), p.op(Mul, &[parts[1], parts[2]]));
                        p.b.tuple(&[sum, other, parts[2]])
                    })
                }),
            ]
        }
        "flat-fold" => vec![program(|p| {
            let inner = p.b.tuple(&[p.x, p.y]);
            let init = p.b.tuple(&[inner, p.i]);
            p.fold(p.n.clone(), init, |p, s, i| {
                let (pair, at) = (p.b.component(s, 0), p.b.component(s, 1));
                let parts = [0, 1].map(|k| p.b.component(pair, k));
                let x = p.get(p.v, i);
                let less = p.op(Op::Lt, &[x, parts[0]]);
                let (first, at) = (p.op(Op::Mul, &[parts[0], x]), p.op(Op::Add, &[at, i]));
                let second = p.op(Op::Select, &[less, parts[0], parts[1]]);
                let pair = p.b.tuple(&[first, second]);
                p.b.tuple(&[pair, at])
            })
        })],
        "zero-parts" => vec![program(|p| {
            let ty = Type::tuple(vec![Type::Double, p.b.ty(p.v).clone()]);
            p.b.zero(ty)
        })],
        "one-hot-zero" => vec![program(|p| {
            p.vector(|p, i| {
                let zero = p.real(0.0);
                p.one_hot(i, zero)
            })
        })],
        "one-hot-mask" => vec![
            program(|p| {
                p.vector(|p, i| {
                    let x = p.hot(i, p.i, p.x);
                    p.one_hot(i, x)
                })
            }),
            program(|p| {
                p.vector(|p, i| {
                    let x = p.mask(p.c, p.x);
                    p.one_hot(i, x)
                })
            }),
        ],
        "prove-one-hot" => vec![program(|p| {
            p.vector(|p, i| {
                let ty = p.b.ty(p.v).clone();
                p.b.emit(Expr::OneHot { index: i, value: p.x, proved: false }, ty)
            })
        })],
        "plus-zero" => [false, true]
            .map(|swapped| {
                program(|p| {
                    let zero = p.b.zero(p.b.ty(p.v).clone());
                    if swapped { p.b.plus(zero, p.v) } else { p.b.plus(p.v, zero) }
                })
            })
            .into(),
        "plus-parts" => vec![program(|p| {
            let (a, c) = (p.b.tuple(&[p.x, p.v]), p.b.tuple(&[p.y, p.w]));
            p.b.plus(a, c)
        })],
        "plus-one-hot" => vec![program(|p| {
            p.vector(|p, i| {
                let (a, c) = (p.one_hot(i, p.x), p.one_hot(i, p.y));
                p.b.plus(a, c)
            })
        })],
        "plus-mask" => vec![program(|p| {
            let (a, c) = (p.masked(p.v), p.masked(p.w));
            p.b.plus(a, c)
        })],
        "plus-build" => vec![program(|p| p.b.plus(p.v, p.w))],
        "same-state" => vec![
            program(|p| {
                p.general(p.n.clone(), p.x, |p, s, i| {
                    let x = p.get(p.v, i);
                    let element = p.op(Mul, &[s, x]);
                    [s, element, element]
                })
            }),
            program(|p| {
                let init = p.b.tuple(&[p.x, p.y]);
                p.general(p.n.clone(), init, |p, s, i| {
                    let (a, c) = (p.b.component(s, 0), p.b.component(s, 1));
                    let x = p.get(p.v, i);
                    let next = p.op(Sub, &[x, a]);
                    let next = p.b.tuple(&[next, c]);
                    let element = p.op(Mul, &[a, c]);
                    [next, element, x]
                })
            }),
        ],
        "fold-twins" => vec![program(|p| {
            // The first and the third are congruent, and so are the second and the fourth, which read them.
            let init = p.b.tuple(&[p.x, p.y, p.x, p.y, p.x]);
            p.fold(p.n.clone(), init, |p, s, i| {
                let s = [0, 1, 2, 3, 4].map(|k| p.b.component(s, k));
                let x = p.get(p.v, i);
                let next = [
                    p.op(Sub, &[s[0], x]),
                    p.op(Mul, &[s[0], s[1]]),
                    p.op(Sub, &[s[2], x]),
                    p.op(Mul, &[s[2], s[3]]),
                    x,
                ];
                p.b.tuple(&next)
            })
        })],
        "loop-twins" => vec![program(|p| {
            let init = p.b.tuple(&[p.x, p.x]);
            p.general(p.n.clone(), init, |p, s, i| {
                let s = [0, 1].map(|k| p.b.component(s, k));
                let x = p.get(p.v, i);
                let next = s.map(|s| p.op(Sub, &[x, s]));
                let next = p.b.tuple(&next);
                let (element, term) = (p.op(Mul, &[s[0], s[1]]), p.op(Mul, &[s[1], x]));
                [next, element, term]
            })
        })],
        "plain-loop" => vec![
            program(|p| {
                let unit = p.b.tuple(&[]);
                p.general(p.n.clone(), unit, |p, s, i| {
                    let x = p.get(p.v, i);
                    let y = p.op(Sin, &[x]);
                    [s, s, y]
                })
            }),
            program(|p| {
                let unit = p.b.tuple(&[]);
                p.general(p.n.clone(), unit, |p, s, i| [s, p.get(p.v, i), s])
            }),
            program(|p| {
                let unit = p.b.tuple(&[]);
                p.general(p.n.clone(), p.x, |p, s, i| {
                    let x = p.get(p.v, i);
                    [p.op(Sub, &[x, s]), unit, unit]
                })
            }),
        ],
        "split-loop" => vec![program(|p| {
            p.general(p.n.clone(), p.x, |p, s, i| {
                let x = p.get(p.v, i);
                let (next, hot) = (p.op(Sub, &[x, s]), p.one_hot(i, x));
                [next, x, hot]
            })
        })],
        _ => Vec::new(),
    }
}

const FINITE: [f64; 7] = [1.5, -0.75, 2.0, 0.1, -3.25, 0.5, 4.0];
const SPECIAL: [f64; 9] = [f64::NAN, 0.0, -0.0, f64::INFINITY, 1.0, f64::NEG_INFINITY, -2.5, 5e-324, 1e300];

fn value(ty: &Type, sizes: &Sizes, next: &mut impl FnMut() -> f64, int: i64) -> Value<f64> {
    match ty {
        Type::Double => Value::Real(next()),
        Type::Int => Value::Int(int),
        Type::Bool => Value::Bool(next() > 0.0),
        Type::Array(size, element) => {
            Value::Array((0..sizes.eval(size).unwrap_or(0)).map(|_| value(element, sizes, next, int)).collect())
        }
        Type::Tuple(fields, _) => Value::Tuple(fields.iter().map(|f| value(f, sizes, next, int)).collect()),
    }
}

/// Arguments at some sizes, whose reals cycle through `reals`; both integers are equal: aliasing indices.
fn arguments(f: &Function, reals: &[f64]) -> Vec<Vec<Value<f64>>> {
    let mut all = Vec::new();
    for n in [0, 1, 2, 3] {
        for start in 0..reals.len() {
            let mut sizes = Sizes::default();
            sizes.insert(f.sizes[0], n);
            sizes.insert(f.sizes[1], (n + 1) % 3);
            let mut at = start;
            let mut next = || {
                at += 1;
                reals[at % reals.len()]
            };
            let int = start as i64 - 2;
            all.push(f.params.iter().map(|p| value(f.ty(*p), &sizes, &mut next, int)).collect());
        }
    }
    all
}

/// Random arguments: sizes from 0 to 4, integers in range and out of it, reals from `reals` and between them.
fn random_arguments(f: &Function, reals: &[f64], seed: u64) -> Vec<Vec<Value<f64>>> {
    let mut state = seed;
    let mut draw = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    (0..RANDOM)
        .map(|_| {
            let mut sizes = Sizes::default();
            sizes.insert(f.sizes[0], draw(5) as i64);
            sizes.insert(f.sizes[1], draw(4) as i64);
            let args: Vec<(VarId, i64)> = f.params.iter().map(|param| (*param, draw(7) as i64 - 2)).collect();
            let mut next = || {
                let [a, b] = [0, 1].map(|_| reals[draw(reals.len() as u64) as usize]);
                if draw(3) == 0 { a * 0.75 + b } else { a }
            };
            args.into_iter().map(|(param, int)| value(f.ty(param), &sizes, &mut next, int)).collect()
        })
        .collect()
}

/// Number of random arguments at which a program is evaluated.
const RANDOM: usize = 60;

#[test]
fn every_rule_applies_to_a_program_written_for_it_and_both_sides_are_the_same() {
    for rule in rules::all() {
        let programs = programs(rule.name);
        assert!(!programs.is_empty(), "no program for the rule {}", rule.name);
        for f in programs {
            assert_eq!(verify(&f), Ok(()), "{}", print(&f));
            let strict = !rule.algebraic;
            // Rules that look through tuples need simplified components.
            let (found, report) = apply(&f, &[rule.name, "component"], strict);
            let what = format!("{}: {}\n{}\nbecomes\n{}", rule.name, rule.law, print(&f), print(&found));
            assert_eq!(verify(&found), Ok(()), "{what}");
            assert!(report.times(rule.name) > 0, "does not apply: {what}");
            let mut told = 0;
            for reals in [&FINITE[..], &SPECIAL] {
                let random = random_arguments(&f, reals, 7 + told as u64);
                for args in arguments(&f, reals).into_iter().chain(random) {
                    let compared = check::compare(&f, &found, &args, strict);
                    told += u32::from(compared.unwrap_or_else(|e| panic!("{e}\nat {args:?}\n{what}")));
                }
            }
            assert!(told > 5, "only {told} arguments told anything: {what}");
        }
    }
}

#[test]
fn algebraic_rules_are_not_exact_and_others_are_never_left_out() {
    // Strict mode omits no more than necessary: each algebraic rule changes some value, bit for bit.
    for rule in rules::all().iter().filter(|rule| rule.algebraic) {
        let changes = programs(rule.name).iter().any(|f| {
            let (found, _) = apply(f, &[rule.name], false);
            let reals = FINITE.iter().chain(&SPECIAL).copied().collect::<Vec<f64>>();
            arguments(f, &reals).iter().any(|args| {
                let (a, b) = (evaluate(f, &mut F64, args), evaluate(&found, &mut F64, args));
                matches!((a, b), (Ok(a), Ok(b)) if format!("{a:?}") != format!("{b:?}"))
            })
        });
        assert!(changes, "{} is exact on its programs", rule.name);
    }
}

/// Returns programs for each step of the engine.
fn step_programs(step: &str) -> Vec<Function> {
    use Op::{Add, Exp, Max, Mul, Sin, Sub};
    match step {
        "common" => vec![program(|p| {
            let sines = [0, 1].map(|_| p.op(Sin, &[p.x]));
            p.op(Mul, &sines)
        })],
        "hoist" => vec![
            program(|p| {
                p.vector(|p, i| {
                    let (x, e) = (p.get(p.v, i), p.op(Exp, &[p.y]));
                    p.op(Mul, &[x, e])
                })
            }),
            // An array whose length is an integer, if it is not negative.
            program(|p| {
                p.vector(|p, i| {
                    let zero = p.b.int(0);
                    let many = p.op(Max, &[p.i, zero]);
                    let (many, y) = (p.b.size_of(many), p.y);
                    let array = p.b.build(many.clone(), |b, k| {
                        let k = b.to_real(k);
                        let sum = b.op(Add, &[k, y]);
                        b.op(Exp, &[sum])
                    });
                    let total = p.sum(many, |p, k| p.get(array, k));
                    let x = p.get(p.v, i);
                    p.op(Mul, &[x, total])
                })
            }),
        ],
        // Of a product and a sum only the product is used.
        "fields" => vec![program(|p| {
            let init = p.b.tuple(&[p.x, p.y]);
            let both = p.fold(p.n.clone(), init, |p, s, i| {
                let [a, b] = [0, 1].map(|k| p.b.component(s, k));
                let x = p.get(p.v, i);
                let (a, b) = (p.op(Mul, &[a, x]), p.op(Sub, &[x, b]));
                p.b.tuple(&[a, b])
            });
            p.b.component(both, 0)
        })],
        "dead" => vec![program(|p| {
            p.vector(|p, i| p.get(p.v, i));
            p.op(Sin, &[p.x])
        })],
        "decide" => vec![program(|p| {
            let (c, x, y) = (p.c, p.x, p.y);
            p.b.if_(c, |b| b.if_(c, |b| b.op(Sin, &[x]), |b| b.op(Exp, &[x])), |_| y)
        })],
        // Elements of the first loop are read twice; in iterations; a single direction differs from the others.
        "turn" => {
            let columns = |array: fn(&mut Builder, &Size, VarId, VarId) -> VarId| {
                program(|p| {
                    let (n, v) = (p.n.clone(), p.v);
                    let rows = p.b.build(Size::constant(9), |b, d| {
                        let array = array(b, &n, v, d);
                        b.build(n.clone(), |b, i| {
                            let last = b.size(n.sub(&Size::var(i)).sub(&Size::constant(1)));
                            let ends = [i, last].map(|i| b.get_proved(array, i));
                            b.op(Sub, &ends)
                        })
                    });
                    p.vector(|p, i| {
                        p.b.build(Size::constant(9), |b, d| {
                            let row = b.get_proved(rows, d);
                            b.get_proved(row, i)
                        })
                    })
                })
            };
            let waves = columns(|b, n, v, d| {
                b.build(n.clone(), |b, i| {
                    let (x, d) = (b.get_proved(v, i), b.to_real(d));
                    let (e, s) = (b.op(Exp, &[x]), b.op(Add, &[x, d]));
                    let s = b.op(Sin, &[s]);
                    b.op(Mul, &[e, s])
                })
            });
            let steps = columns(|b, n, v, d| {
                b.build(n.clone(), |b, i| {
                    let (x, k, zero) = (b.get_proved(v, i), b.size_of(i), b.real(0.0));
                    let d = b.to_real(d);
                    b.fold(k, zero, |b, s, _| {
                        let s = b.op(Add, &[s, d]);
                        let s = b.op(Mul, &[s, x]);
                        b.op(Sin, &[s])
                    })
                })
            });
            let hot = columns(|b, n, v, d| {
                let two = b.int(2);
                let is_two = b.op(Op::Eq, &[d, two]);
                b.build(n.clone(), |b, i| {
                    let (x, k) = (b.get_proved(v, i), b.size_of(i));
                    let (one, zero) = (b.real(1.0), b.real(0.0));
                    let slope = b.op(Op::Select, &[is_two, one, zero]);
                    b.fold(k, slope, |b, s, _| {
                        let s = b.op(Add, &[s, x]);
                        b.op(Sin, &[s])
                    })
                })
            });
            vec![waves, steps, hot]
        }
        // Exponentials of each v[j] for each i.
        "expand" => vec![program(|p| {
            p.vector(|p, i| {
                let x = p.get(p.w, i);
                p.sum(p.n.clone(), |p, j| {
                    let y = p.get(p.v, j);
                    let e = p.op(Exp, &[y]);
                    let s = p.op(Sub, &[e, x]);
                    p.op(Sin, &[s])
                })
            })
        })],
        "merge" => {
            let sums = program(|p| {
                let sums = [p.x, p.y].map(|z| {
                    p.sum(p.n.clone(), |p, i| {
                        let x = p.get(p.v, i);
                        let e = p.op(Exp, &[x]);
                        let s = p.op(Add, &[e, z]);
                        p.op(Sin, &[s])
                    })
                });
                p.b.tuple(&sums)
            });
            // The second loop reads the first one's elements at its own index; the array is the result, or read
            // elsewhere.
            let exponentials = |p: &mut Make| {
                p.vector(|p, i| {
                    let x = p.get(p.v, i);
                    p.op(Exp, &[x])
                })
            };
            let summed = program(|p| {
                let e = exponentials(p);
                let sum = p.sum(p.n.clone(), |p, i| {
                    let x = p.get(e, i);
                    p.op(Sin, &[x])
                });
                p.b.tuple(&[e, sum])
            });
            let looked_into = program(|p| {
                let e = exponentials(p);
                let sines = p.vector(|p, i| {
                    let x = p.get(e, i);
                    p.op(Sin, &[x])
                });
                let ends = [e, sines].map(|array| {
                    p.fold(p.n.clone(), p.x, |p, s, i| {
                        let x = p.get(array, i);
                        p.op(Max, &[x, s])
                    })
                });
                p.b.tuple(&ends)
            });
            vec![sums, summed, looked_into]
        }
        // The second loop needs the result of the first, and both compute the exponentials; nested loops in the same
        // order, or not.
        "share" => {
            let along = program(|p| {
                let exponential = |p: &mut Make, i: VarId| {
                    let x = p.get(p.v, i);
                    p.op(Exp, &[x])
                };
                let total = p.sum(p.n.clone(), |p, i| {
                    let e = exponential(p, i);
                    p.op(Sin, &[e])
                });
                p.vector(|p, i| {
                    let e = exponential(p, i);
                    p.op(Sub, &[e, total])
                })
            });
            let exponential = |p: &mut Make, i: VarId, j: VarId| {
                let row = p.get(p.m, i);
                let (x, y) = (p.get(row, j), p.get(p.v, i));
                let z = p.op(Sub, &[x, y]);
                p.op(Exp, &[z])
            };
            let nests = [false, true].map(|turned| {
                program(|p| {
                    let (n, k) = (p.n.clone(), p.k.clone());
                    let rows = p.vector(|p, i| p.sum(k.clone(), |p, j| exponential(p, i, j)));
                    let term = |p: &mut Make, i: VarId, j: VarId| {
                        let (e, row) = (exponential(p, i, j), p.get(rows, i));
                        p.op(Op::Div, &[e, row])
                    };
                    let (outer, inner) = if turned { (k, n) } else { (n, k) };
                    let build = |p: &mut Make, i: VarId| {
                        p.sum(inner, |p, j| if turned { term(p, j, i) } else { term(p, i, j) })
                    };
                    let columns = p.array(outer, build);
                    p.b.tuple(&[rows, columns])
                })
            });
            [along].into_iter().chain(nests).collect()
        }
        // An array is built in one branch, in both, in two ifs of one condition; its user is a loop or an element.
        "branches" => {
            let either = |p: &mut Make, both: bool| {
                let (c, v, w, n) = (p.c, p.v, p.w, p.n.clone());
                let of = move |b: &mut Builder, from: VarId, op: Op| {
                    b.build(n, |b, i| {
                        let x = b.get_proved(from, i);
                        b.op(op, &[x])
                    })
                };
                let other = of.clone();
                p.b.if_(c, |b| of(b, v, Sin), |b| if both { other(b, w, Exp) } else { w })
            };
            let mut all: Vec<Function> = [false, true]
                .into_iter()
                .flat_map(|both| {
                    [
                        program(|p| {
                            let array = either(p, both);
                            p.sum(p.n.clone(), |p, i| {
                                let (x, y) = (p.get(array, i), p.get(p.v, i));
                                p.op(Mul, &[x, y])
                            })
                        }),
                        program(|p| {
                            let array = either(p, both);
                            p.vector(|p, i| {
                                let (x, y) = (p.get(array, i), p.get(p.v, i));
                                p.op(Max, &[x, y])
                            })
                        }),
                        program(|p| {
                            let array = either(p, both);
                            p.fold(p.n.clone(), p.x, |p, s, i| {
                                let x = p.get(array, i);
                                p.op(Max, &[x, s])
                            })
                        }),
                    ]
                })
                .collect();
            all.push(program(|p| {
                let (array, beside) = (either(p, true), either(p, false));
                p.vector(|p, i| {
                    let (x, y) = (p.get(array, i), p.get(beside, i));
                    p.op(Sub, &[x, y])
                })
            }));
            // One element of an array of three.
            all.push(program(|p| {
                let (c, x, y) = (p.c, p.x, p.y);
                let of = |b: &mut Builder, number: VarId, op: Op| {
                    b.build(Size::constant(3), |b, i| {
                        let i = b.to_real(i);
                        let sum = b.op(Add, &[i, number]);
                        b.op(op, &[sum])
                    })
                };
                let array = p.b.if_(c, |b| of(b, x, Sin), |b| of(b, y, Exp));
                let one = p.b.int(1);
                p.get(array, one)
            }));
            all
        }
        _ => Vec::new(),
    }
}

#[test]
fn every_step_of_the_engine_is_made_for_a_program_written_for_it_and_both_sides_are_the_same() {
    for (step, does) in rules::ENGINE {
        let programs = step_programs(step);
        assert!(!programs.is_empty(), "no program for the step {step}");
        for f in programs {
            let options = Options { strict: true, ..Options::default() };
            let what = format!("{step}: {does}\n{}", print(&f));
            let mut told = 0;
            for reals in [&FINITE[..], &SPECIAL] {
                for args in arguments(&f, reals).into_iter().chain(random_arguments(&f, reals, 3)) {
                    let (_, report, compared) =
                        check::optimised(&f, &args, &options).unwrap_or_else(|e| panic!("{e}\nat {args:?}\n{what}"));
                    assert!(report.times(step) > 0, "is not made: {what}{report}");
                    told += u32::from(compared);
                }
            }
            assert!(told > 5, "only {told} arguments told anything: {what}");
        }
    }
}

#[test]
fn in_a_branch_its_condition_is_known() {
    let f = program(|p| {
        let (c, x, y) = (p.c, p.x, p.y);
        p.b.if_(
            c,
            |b| b.if_(c, |b| b.op(Op::Sin, &[x]), |b| b.op(Op::Neg, &[x])),
            |b| b.if_(c, |b| b.op(Op::Sin, &[y]), |b| b.op(Op::Neg, &[y])),
        )
    });
    let (found, report) = apply(&f, &[], true);
    assert_eq!(report.times("decide"), 2);
    assert_eq!(print(&found).matches("if").count(), 1);
    for args in arguments(&f, &SPECIAL) {
        assert_eq!(check::compare(&f, &found, &args, true), Ok(true));
    }
}

#[test]
fn sums_of_arrays_are_linear_in_no_number_where_something_else_depends_on_the_step() {
    let untouched = [
        // The index.
        program(|p| p.products(|p, _| p.n.clone(), |i, _| i)),
        // The number of terms.
        program(|p| p.products(|_, i| Size::var(i).add(&Size::constant(1)), |_, j| j)),
        // A number in loops that are not an array's, because the count of one depends on another.
        program(|p| {
            p.sum(p.n.clone(), |p, i| {
                let x = p.get(p.v, i);
                p.sum(p.n.clone(), |p, j| {
                    let y = p.get(p.w, j);
                    p.sum(Size::var(j).add(&Size::constant(1)), |p, k| {
                        let z = p.get(p.w, k);
                        let (s, t) = (p.op(Op::Mul, &[x, y]), p.op(Op::Mul, &[y, z]));
                        let s = p.op(Op::Add, &[s, t]);
                        let number = p.op(Op::Sin, &[s]);
                        let (row, width) = (p.get(p.m, k), p.k.clone());
                        p.b.build(width, |b, l| {
                            let last = b.get_proved(row, l);
                            b.op(Op::Mul, &[number, last])
                        })
                    })
                })
            })
        }),
        // Quotients, with possibly no iteration.
        program(|p| p.vectors(|p, x, y| p.op(Op::Div, &[x, y]))),
        // A number in as many loops as the product.
        program(|p| {
            p.vectors(|p, x, y| {
                let (s, c) = (p.op(Op::Sub, &[x, y]), p.op(Op::Mul, &[y, y]));
                let s = p.op(Op::Sin, &[s]);
                p.op(Op::Mul, &[s, c])
            })
        }),
        // A quotient that is finite only if there is an iteration.
        program(|p| {
            let one = p.real(1.0);
            let quotient = p.op(Op::Div, &[one, p.y]);
            p.vectors(|p, x, y| {
                let y = p.op(Op::Mul, &[y, quotient]);
                p.op(Op::Mul, &[x, y])
            })
        }),
    ];
    for f in untouched {
        assert_eq!(verify(&f), Ok(()), "{}", print(&f));
        let (found, report) = apply(&f, &["sum-of-linear"], false);
        assert_eq!(report.times("sum-of-linear"), 0, "{}\nbecomes\n{}", print(&f), print(&found));
    }
}

#[test]
fn a_factor_is_taken_out_only_where_that_takes_an_operation_less() {
    use Op::{Add, Div, Mul, Sin, Sub};
    let untouched = [
        // A product with another use; then another one.
        program(|p| {
            let third = p.op(Sin, &[p.x]);
            let (a, b) = (p.op(Mul, &[p.x, p.y]), p.op(Mul, &[p.x, third]));
            let sum = p.op(Add, &[a, b]);
            p.b.tuple(&[sum, a])
        }),
        program(|p| {
            let third = p.op(Sin, &[p.x]);
            let (a, b) = (p.op(Div, &[p.y, p.x]), p.op(Div, &[third, p.x]));
            let (sum, difference) = (p.op(Add, &[a, b]), p.op(Sub, &[a, b]));
            p.b.tuple(&[sum, difference])
        }),
        // One outside the loop: a sum in place of a product would not be cheaper.
        program(|p| {
            let outside = p.op(Mul, &[p.x, p.y]);
            p.vector(|p, i| {
                let y = p.get(p.v, i);
                let product = p.op(Mul, &[p.x, y]);
                p.op(Add, &[outside, product])
            })
        }),
        // The dividend is not a factor of both.
        program(|p| {
            let third = p.op(Sin, &[p.x]);
            let (a, b) = (p.op(Div, &[p.x, p.y]), p.op(Div, &[p.x, third]));
            p.op(Add, &[a, b])
        }),
        program(|p| {
            let third = p.op(Sin, &[p.x]);
            let (a, b) = (p.op(Div, &[p.y, p.x]), p.op(Mul, &[third, p.x]));
            p.op(Add, &[a, b])
        }),
        // Sums split masks.
        program(|p| {
            let condition = p.op(Op::Eq, &[p.i, p.j]);
            let product = p.op(Mul, &[p.x, p.y]);
            let (mask, product) = (p.mask(condition, p.x), p.op(Mul, &[p.x, product]));
            p.op(Add, &[mask, product])
        }),
    ];
    for f in untouched {
        assert_eq!(verify(&f), Ok(()), "{}", print(&f));
        let (found, report) = apply(&f, &["common-factor"], false);
        assert_eq!(report.times("common-factor"), 0, "{}\nbecomes\n{}", print(&f), print(&found));
    }
}

#[test]
fn one_hot_arrays_stay_in_branches_that_sums_look_for_or_that_keep_an_index_in_range() {
    let untouched = [
        // A sum over an index that does not change the condition moves into the mask.
        program(|p| {
            p.sum(p.n.clone(), |p, i| {
                let (c, n, x, ty) = (p.c, p.n.clone(), p.x, p.b.ty(p.v).clone());
                p.b.if_(c, |b| b.one_hot_proved(n, i, x), |b| b.zero(ty))
            })
        }),
        // A long row.
        program(|p| {
            p.sum(p.n.clone(), |p, i| {
                let (n, row, ty) = (p.n.clone(), p.get(p.m, i), p.b.ty(p.m).clone());
                let element = p.get(p.v, i);
                let own = p.op(Op::Lt, &[element, p.x]);
                p.b.if_(own, |b| b.one_hot_proved(n, i, row), |b| b.zero(ty))
            })
        }),
        // A sum over the index vanishes with the mask around all of it.
        program(|p| {
            p.sum(p.n.clone(), |p, i| {
                let (n, x, ty) = (p.n.clone(), p.x, p.b.ty(p.v).clone());
                let asked = p.op(Op::Eq, &[i, p.i]);
                p.b.if_(asked, |b| b.one_hot_proved(n, i, x), |b| b.zero(ty))
            })
        }),
        // In range if the condition holds, which is only known in the branch.
        program(|p| {
            p.vector(|p, i| {
                let (n, x, ty) = (p.n.clone(), p.x, p.b.ty(p.v).clone());
                let next = Size::var(i).add(&Size::constant(1));
                let args = [p.b.size(next.clone()), p.b.size(n.clone())];
                let inside = p.op(Op::Lt, &args);
                let hot = |b: &mut Builder| {
                    let next = b.size(next);
                    b.one_hot_proved(n, next, x)
                };
                p.b.if_(inside, hot, |b| b.zero(ty))
            })
        }),
    ];
    for f in untouched {
        assert_eq!(verify(&f), Ok(()), "{}", print(&f));
        let names = ["if-one-hot", "if-one-hots"];
        let (found, report) = apply(&f, &names, false);
        let times: u64 = names.iter().map(|name| report.times(name)).sum();
        assert_eq!(times, 0, "{}\nbecomes\n{}", print(&f), print(&found));
    }
}

#[test]
fn recurrences_stay_in_one_loop_where_none_leaves_a_loop_around() {
    use Op::{Add, Mul, Sin, Sub};
    // Two independent ones.
    let two = |p: &mut Make, y: VarId, looks: bool| {
        let init = p.b.tuple(&[p.x, p.y]);
        let last = p.fold(p.n.clone(), init, |p, s, i| {
            let [a, b] = [0, 1].map(|k| p.b.component(s, k));
            let x = p.get(p.v, i);
            let (x, y) = (p.op(Sin, &[x]), p.op(Sub, &[x, y]));
            let (first, second) = (p.op(Mul, &[a, if looks { b } else { x }]), p.op(Mul, &[b, y]));
            p.b.tuple(&[first, second])
        });
        let [a, b] = [0, 1].map(|k| p.b.component(last, k));
        p.op(Add, &[a, b])
    };
    let untouched = [
        // There is no loop around.
        program(|p| two(p, p.x, false)),
        // Both depend on it; then one does, but the other reads that one.
        program(|p| {
            p.vector(|p, j| {
                let (start, y) = (p.get(p.v, j), p.get(p.w, j));
                let init = p.b.tuple(&[start, y]);
                let last = p.fold(p.n.clone(), init, |p, s, i| {
                    let [a, b] = [0, 1].map(|k| p.b.component(s, k));
                    let x = p.get(p.v, i);
                    let (a, b) = (p.op(Mul, &[a, x]), p.op(Mul, &[x, b]));
                    p.b.tuple(&[a, b])
                });
                let [a, b] = [0, 1].map(|k| p.b.component(last, k));
                p.op(Add, &[a, b])
            })
        }),
        program(|p| {
            p.vector(|p, j| {
                let y = p.get(p.w, j);
                two(p, y, true)
            })
        }),
        // A statement that may fail does not leave a loop that may not run.
        program(|p| {
            p.vector(|p, j| {
                let (y, at, init) = (p.get(p.w, j), p.i, p.b.tuple(&[p.x, p.y]));
                let last = p.fold(p.n.clone(), init, |p, s, _| {
                    let [a, b] = [0, 1].map(|k| p.b.component(s, k));
                    let checked = p.b.get(p.v, at);
                    let (a, b) = (p.op(Mul, &[a, checked]), p.op(Mul, &[b, y]));
                    p.b.tuple(&[a, b])
                });
                let [a, b] = [0, 1].map(|k| p.b.component(last, k));
                p.op(Add, &[a, b])
            })
        }),
    ];
    for f in untouched {
        assert_eq!(verify(&f), Ok(()), "{}", print(&f));
        let (found, report) = apply(&f, &["split-fold"], true);
        assert_eq!(report.times("split-fold"), 0, "{}\nbecomes\n{}", print(&f), print(&found));
    }
}
