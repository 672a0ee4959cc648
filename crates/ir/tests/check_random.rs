//! Programs with tokens lost, doubled, swapped or replaced: nothing panics, and everything elaborated is valid IR.

mod frontend;
use chainrule_base::{Kind, Sources};
use chainrule_ir::{Program, verify};
use frontend::FIGURE_4;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const PROGRAMS: &[&str] = &[
    FIGURE_4,
    "let f = fun (a : [m][n]Double) (x : [n]Double) (k : Card) -> build m (fun i -> vectorDot a[i] x + k)",
    "type P = { a : Double, w : [3]Double }\nlet g = fun (p : P) -> gradient (fun q -> q.a * vectorSum q.w) p\nlet f = fun (p : P) -> (g p).w[1]",
    "let f = fun x y -> snd (deriv (x * (snd (deriv (x + y) y))) x)",
    "let f = fun v -> let (a, b) = (vectorSum v, length v) in if a > 0.0 && b > 2 then [a, v[0]] else [0, 1]",
    "let h = fun v -> hessian (fun w -> sin (vectorDot w w)) v\nlet f = fun v -> jacobian (fun w -> vectorMap w exp) v",
    "let f = fun (s : (Double, Int)) -> while (fun (x, n) -> x < 10.0) (fun (x, n) -> (x * 2, n + 1)) s 40",
    "let f = fun a b -> forward (fun x y -> x * y) (a, 1.0) (b, 2.0)\nlet k = 3\nlet g = fun (v : [k]Double) -> v[2] ** 2 / k",
];

/// Returns tokens, roughly: words, numbers, and single other characters.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut in_word = false;
    for c in text.chars() {
        let word = c.is_alphanumeric() || c == '_';
        match tokens.last_mut() {
            Some(last) if word && in_word => last.push(c),
            _ => tokens.push(c.to_string()),
        }
        in_word = word;
    }
    tokens
}

/// Returns one of the programs with a few tokens changed by `bytes`.
fn mutated(bytes: &[u8]) -> String {
    let byte = |k: usize| usize::from(bytes.get(k).copied().unwrap_or(0));
    let mut program = tokens(PROGRAMS[byte(0) % PROGRAMS.len()]);
    let others = tokens(PROGRAMS[byte(1) % PROGRAMS.len()]);
    for change in bytes.get(2..).unwrap_or(&[]).chunks(4) {
        if program.is_empty() {
            break;
        }
        let byte = |k: usize| usize::from(change.get(k).copied().unwrap_or(0));
        let at = (byte(0) * 256 + byte(1)) % program.len();
        let other = (byte(2) * 7 + byte(1)) % others.len();
        match byte(3) % 5 {
            0 => {
                program.remove(at);
            }
            1 => program.insert(at, program[at].clone()),
            2 => program[at].clone_from(&others[other]),
            3 => program.insert(at, others[other].clone()),
            _ => {
                let with = (at + 1 + byte(2)) % program.len();
                program.swap(at, with);
            }
        }
    }
    program.concat()
}

fn check(text: &str) {
    let mut sources = Sources::new();
    let root = sources.add("main.ft", text);
    let loaded = Program::load(&mut sources, root, |path: &str, _| Err(format!("there is no file {path}")));
    let program = match loaded {
        Ok(program) => program,
        Err(diagnostics) => {
            for d in &diagnostics {
                assert_ne!(d.kind, Kind::Bug, "{d}\n{text}");
            }
            return;
        }
    };
    for def in program.definitions() {
        match program.elaborate(&def.name) {
            Ok(function) => {
                if let Err(found) = verify(&function) {
                    panic!("{}: {found:#?}\n{text}", def.name);
                }
            }
            Err(diagnostics) => {
                for d in &diagnostics {
                    assert_ne!(d.kind, Kind::Bug, "{}: {d}\n{text}", def.name);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: chainrule_cases::cases(1500),
        rng_seed: RngSeed::Fixed(20_181_115),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn changed_programs_never_panic(bytes in proptest::collection::vec(any::<u8>(), 2..22)) {
        check(&mutated(&bytes));
    }
}

#[test]
fn the_programs_themselves_are_right() {
    for text in PROGRAMS {
        assert!(frontend::load(text).is_ok(), "{text}");
        check(text);
    }
}
