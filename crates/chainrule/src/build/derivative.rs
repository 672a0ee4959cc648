//! Derivatives as expressions (D*, section 2): they can stand inside further functions, be
//! differentiated again, be asked for by time. They are derived together, when a function is made of them.

use super::{Expr, Tensor};

/// The derivative of `f` by `by[0]`, by `by[1]`, and so on. The order of variables does not matter:
/// the derivative is made once. Variables must be variables, made by [`crate::var`] and the like.
///
/// ```
/// use chainrule::{d, var, Function};
/// let (x, y) = (var("x"), var("y"));
/// let f = x.sin() * &y;
/// assert_eq!(d(&f, [&x, &y]), d(&f, [&y, &x]));
/// let g = Function::new("g", (&x, &y), &(d(&f, [&x]) + &y))?.compile()?; // y cos x + y
/// assert_eq!(g.eval(&[&[0.0], &[3.0]])?, [[6.0]]);
/// # Ok::<(), chainrule::Error>(())
/// ```
///
/// # Panics
/// When something in `by` is not a variable.
#[must_use]
pub fn d<'a>(f: &Expr, by: impl IntoIterator<Item = &'a Expr>) -> Expr {
    let session = f.session.clone();
    let by: Vec<_> = by.into_iter().map(|x| session.adopt(x)).collect();
    let made = session.graph().derivative(f.id, &by);
    match made {
        Ok(id) => Expr { session, id },
        Err(diagnostic) => panic!("{diagnostic}"),
    }
}

/// The derivative of `f` by time, where each variable of `rates` changes at the given rate: with
/// `rates = [(q, qd), (qd, qdd)]` it is asked for along q -> qd -> qdd, and may be asked for again.
/// What `f` depends on besides is constant in time.
///
/// # Panics
/// When a variable and its rate differ in size, or what stands for a variable is none.
#[must_use]
pub fn time_derivative(f: &Expr, rates: &[(&dyn Tensor, &dyn Tensor)]) -> Expr {
    let mut sum: Option<Expr> = None;
    for (x, rate) in rates {
        let (x, rate) = (x.elements(), rate.elements());
        assert_eq!(x.len(), rate.len(), "each variable has one rate");
        for (x, rate) in x.iter().zip(&rate) {
            let term = d(f, [x]) * rate;
            sum = Some(match sum {
                None => term,
                Some(sum) => sum + term,
            });
        }
    }
    sum.unwrap_or_else(|| f.constant_like(0.0))
}
