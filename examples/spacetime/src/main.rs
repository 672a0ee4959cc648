//! The space-time gradient for chains of several lengths: operations, and derivation time.

use chainrule_example_manipulator::robot::Twist;
use chainrule_example_spacetime::objective;
use std::time::Instant;

fn main() -> Result<(), chainrule::Error> {
    println!("{:>5} {:>40} {:>40} {:>9}", "links", "function", "gradient", "seconds");
    for n in [2, 3, 4, 6, 12] {
        let f = objective(n, Twist::Parallel)?;
        let start = Instant::now();
        let gradient = f.gradient().by(&["a"]).function()?;
        let seconds = start.elapsed().as_secs_f64();
        let (value, derivative) = (f.counts().unwrap_or_default(), gradient.counts().unwrap_or_default());
        println!("{n:>5} {:>40} {:>40} {seconds:>9.3}", value.to_string(), derivative.to_string());
    }
    let gradient = objective(2, Twist::Parallel)?.gradient().by(&["a"]).compile()?;
    let a = [0.1, -0.2, 0.3, 0.4, -0.5, 0.6, -0.7, 0.8];
    println!("\ngradient for 2 links at t = 0.5: {:.6?}", gradient.eval(&[&a, &[0.5]])?[0]);
    Ok(())
}
