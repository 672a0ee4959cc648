//! Derivatives as expressions (D*, section 2): they can occur in further functions, be differentiated again, and be
//! taken by time. They are derived together, when a function is built from them.

use super::{Expr, Tensor};

/// Returns the derivative of `f` by `by[0]`, by `by[1]`, and so on. The order of variables does not matter: the
/// derivative is computed once. `by` contains only variables, from [`crate::var`] and similar functions.
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
/// Panics if `by` contains an expression that is not a variable.
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

/// Returns the derivative of `f` by time, where each variable of `rates` changes at the given rate: with `rates = [(q,
/// qd), (qd, qdd)]` it is taken along q -> qd -> qdd, and can be taken again. All other variables of `f` are constant
/// in time.
///
/// # Panics
/// Panics if a variable and its rate differ in size, or if an expression in place of a variable is none.
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
