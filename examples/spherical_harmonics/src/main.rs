//! The Jacobian of the spherical harmonics: operation counts for several orders, values at one point.

use chainrule::{Function, Vector, vars};
use chainrule_example_spherical_harmonics::spherical_harmonics;

fn main() -> Result<(), chainrule::Error> {
    println!("{:>5} {:>9} {:>36} {:>36}", "order", "results", "function", "Jacobian");
    for order in [5, 10, 15, 20] {
        let v = vars("v", 3);
        let harmonics = Vector::new(spherical_harmonics(order, &v[0], &v[1], &v[2])).named("Y");
        let f = Function::new("harmonics", &v, &harmonics)?;
        let jacobian = f.jacobian().function()?;
        let (value, derivative) = (f.counts().unwrap_or_default(), jacobian.counts().unwrap_or_default());
        println!("{order:>5} {:>9} {:>36} {:>36}", 3 * harmonics.len(), value.to_string(), derivative.to_string());
    }

    let v = vars("v", 3);
    let harmonics = Vector::new(spherical_harmonics(2, &v[0], &v[1], &v[2])).named("Y");
    let jacobian = Function::new("harmonics", &v, &harmonics)?.jacobian().compile()?;
    println!("\nthe gradients of the nine harmonics of order 2 at (0.6, 0, 0.8):");
    for row in jacobian.eval(&[&[0.6, 0.0, 0.8]])?[0].chunks(3) {
        println!("{:>12.8} {:>12.8} {:>12.8}", row[0], row[1], row[2]);
    }
    Ok(())
}
