//! Messages of inference.

use super::builtin::{Form, symbol};
use super::constraint::{Asked, Constraint, Failure};
use super::infer::Why;
use super::table::{Mismatch, Node, Table, TyId, TypeNames};
use chainrule_base::{Diagnostic, Name, Span};
use chainrule_syntax::tree::ExprKind;

/// Returns a type in the syntax of F~.
pub(crate) fn show(table: &Table, ty: TyId) -> String {
    table.show(ty, &mut TypeNames::default())
}

/// Returns a type as a noun: `Double`, `a function Double => Bool`, `a number`.
fn noun(table: &Table, ty: TyId, names: &mut TypeNames) -> String {
    match table.as_var(ty) {
        Some(v) if v.class == super::table::Class::Num => "a number".to_owned(),
        _ => format!("`{}`", table.show(ty, names)),
    }
}

/// Types that do not unify.
#[derive(Clone, Copy)]
pub(crate) struct Clash {
    /// Position of the expression of type `actual`.
    pub span: Span,
    pub actual: TyId,
    pub expected: TyId,
    pub mismatch: Mismatch,
}

pub(crate) fn mismatch(table: &Table, clash: Clash, why: &Why, origin: Option<&(Name, Span)>) -> Diagnostic {
    let Clash { span, actual, expected, mismatch } = clash;
    let mut names = TypeNames::default();
    let (found, wanted) = (noun(table, actual, &mut names), noun(table, expected, &mut names));
    let title = match mismatch {
        Mismatch::TooLarge => return type_too_large(span, &Name::new("this expression")),
        Mismatch::Occurs => "this type would contain itself".to_owned(),
        Mismatch::FunctionInData => "a function where there must be data".to_owned(),
        Mismatch::Different | Mismatch::NotNumber => format!("expected {wanted}, found {found}"),
    };
    let mut message = Diagnostic::error(title).with_label(span, format!("this is {found}"));
    if let Some(at) = why.span {
        message = message.with_label(at, why.label.clone());
    } else {
        message = message.with_reason(why.label.clone());
    }
    if let Some((name, at)) = origin
        && *at != span
    {
        message = message.with_label(*at, format!("`{name}` comes from here"));
    }
    let is_function = |ty| matches!(table.node(ty), Node::Fun(..));
    if let Some((wanted, found)) = results(table, expected, actual)
        && matches!((table.node(wanted), table.node(found)), (Node::Double, Node::Int))
    {
        return message
            .with_help("its result is an `Int`, which has no derivative and no fraction: `real` makes it a `Double`");
    }
    let help = match (table.node(expected), table.node(actual)) {
        _ if mismatch == Mismatch::Occurs => {
            let reason = format!("{wanted} and {found} would have to be one type");
            return message.with_reason(reason).with_help("annotate the parameters to see where it goes wrong");
        }
        (wanted, Node::Array(..))
            if matches!(wanted, Node::Double)
                || table.as_var(expected).is_some_and(|v| v.class == super::table::Class::Num) =>
        {
            "operators and functions of numbers take elements: `vectorMap v f`, `vectorAdd v w`, `v[i]`".to_owned()
        }
        (Node::Double, Node::Int) => "an `Int` becomes a `Double` by `real`: `real n`".to_owned(),
        (Node::Int, Node::Double) => {
            "indices, lengths and counts are `Int`; `div` and `mod` divide `Int`s, `/` gives a `Double`".to_owned()
        }
        (Node::Tuple(a, Some(x)), Node::Tuple(b, Some(y))) if a.len() == b.len() && same_names(x, y) => {
            "the fields are the same, their order is not: write them in one order".to_owned()
        }
        (Node::Fun(..), _) if !is_function(actual) => "a function is wanted here: `fun x -> ...`".to_owned(),
        (_, Node::Fun(..)) if !is_function(expected) => "this is a function: is an argument missing?".to_owned(),
        _ => return message,
    };
    message.with_help(help)
}

/// Returns the results of two functions with equal numbers of parameters.
fn results(table: &Table, a: TyId, b: TyId) -> Option<(TyId, TyId)> {
    let (Node::Fun(_, mut x), Node::Fun(_, mut y)) = (table.node(a).clone(), table.node(b).clone()) else {
        return None;
    };
    while let (Node::Fun(_, r), Node::Fun(_, s)) = (table.node(x), table.node(y)) {
        (x, y) = (*r, *s);
    }
    Some((x, y))
}

fn same_names(a: &[Name], b: &[Name]) -> bool {
    let (mut a, mut b) = (a.to_vec(), b.to_vec());
    a.sort();
    b.sort();
    a == b
}

pub(crate) fn failure(table: &Table, asked: &Asked, failure: &Failure) -> Diagnostic {
    let by = &asked.by;
    match failure {
        Failure::Unequal(a, b, why) => {
            let reason = match &asked.constraint {
                Constraint::Arith { .. } => {
                    format!("`{by}` of two `Int`s is an `Int`, with a `Double` it is a `Double`")
                }
                Constraint::Dual { .. } | Constraint::Deriv { .. } => {
                    "a derivative holds pairs of a value and its tangent; `snd` takes the tangent out of one".to_owned()
                }
                _ => format!("`{by}` asks for it"),
            };
            let clash = Clash { span: asked.span, actual: *b, expected: *a, mismatch: *why };
            mismatch(table, clash, &Why::new(reason, None), None)
        }
        Failure::NoComponent(ty, index) => Diagnostic::error(format!("no component `.{index}`"))
            .with_label(asked.span, format!("this is `{}`", show(table, *ty)))
            .with_reason(match table.node(*ty) {
                Node::Tuple(fields, _) => format!("it has {} components, counted from 0", fields.len()),
                _ => "only tuples have components".to_owned(),
            }),
        Failure::NoField(ty, field) => {
            let message = Diagnostic::error(format!("no field `{field}`"))
                .with_label(asked.span, format!("this is asked of `{}`", show(table, *ty)));
            match table.node(*ty) {
                Node::Tuple(_, Some(names)) => {
                    let known: Vec<&str> = names.iter().map(|n| &**n).collect();
                    match nearest(field, &known) {
                        Some(best) => message.with_help(format!("did you mean `{best}`?")),
                        None => message.with_help(format!("its fields are {}", quoted(&known))),
                    }
                }
                _ => message.with_reason("only records have fields"),
            }
        }
        Failure::ByOther(ty) => Diagnostic::error(format!("cannot differentiate by `{}`", show(table, *ty)))
            .with_label(asked.span, format!("`{by}` is asked for here"))
            .with_reason("derivatives are by `Double`s and arrays, tuples and records of them")
            .with_help("an `Int` becomes a `Double` by `real`; capture what is no `Double` instead of passing it"),
        Failure::OfOther(ty) => {
            Diagnostic::error(format!("cannot differentiate a value of type `{}`", show(table, *ty)))
                .with_label(asked.span, format!("`{by}` is asked for here"))
                .with_reason("only `Double`s have derivatives")
                .with_help("an `Int` becomes a `Double` by `real`")
        }
    }
}

pub(crate) fn undetermined(by: &Name, span: Span) -> Diagnostic {
    Diagnostic::error("a type is missing here")
        .with_label(span, format!("the type that `{by}` is asked of is not known"))
        .with_help("annotate the parameter: `(p : { x : Double, y : Double })` or `(p : (Double, Double))`")
}

pub(crate) fn function_in_data(span: Span, where_: &str) -> Diagnostic {
    Diagnostic::error("a function cannot be stored in data")
        .with_label(span, format!("this is a function, in {where_}"))
        .with_reason("functions are passed, applied and bound by `let`, never stored: so every program can be inlined")
        .with_help("choose or store the data that the function needs, and build the function from it")
}

pub(crate) fn unknown_name(name: &Name, span: Span, known: &[&str]) -> Diagnostic {
    let message =
        Diagnostic::error(format!("unknown name `{name}`")).with_label(span, "nothing of that name is in scope");
    match nearest(name, known) {
        Some(best) => message.with_help(format!("did you mean `{best}`?")),
        None => message.with_help("define it above with `let`, or import the file that does"),
    }
}

pub(crate) fn unknown_type(name: &Name, span: Span, known: &[&str]) -> Diagnostic {
    let message = Diagnostic::error(format!("unknown type `{name}`")).with_label(span, "no type is called that");
    match nearest(name, known) {
        Some(best) => message.with_help(format!("did you mean `{best}`?")),
        None => message.with_help("types are `Double`, `Int`, `Bool`, `[n]T`, `(A, B)`, `{ a : A }`, `A => B`"),
    }
}

pub(crate) fn recursion(name: &Name, span: Span, at: Span) -> Diagnostic {
    Diagnostic::error(format!("`{name}` uses itself"))
        .with_label(span, "here")
        .with_label(at, "its definition is not finished")
        .with_reason("F~ has no recursion")
        .with_help("loop with `ifold`, `sum`, `build` or `while`")
}

pub(crate) fn used_before(name: &Name, span: Span, at: Span) -> Diagnostic {
    Diagnostic::error(format!("`{name}` is used before it is defined"))
        .with_label(span, "used here")
        .with_label(at, "defined here")
        .with_reason("a definition sees those above it")
        .with_help(format!("move `{name}` up"))
}

pub(crate) fn form_alone(name: &Name, form: Form, span: Span) -> Diagnostic {
    Diagnostic::error(format!("`{name}` must be applied"))
        .with_label(span, "here it stands alone")
        .with_reason(format!("`{name}` is no function but a form: `{}`", form.usage()))
        .with_help(format!("write `fun x -> {}` where a function is wanted", form.usage()))
}

pub(crate) fn form_arguments(name: &str, form: Form, n: usize, span: Span) -> Diagnostic {
    let found = if n == 1 { "1 argument".to_owned() } else { format!("{n} arguments") };
    Diagnostic::error(format!("`{name}` gets {found}"))
        .with_label(span, "here")
        .with_help(format!("write `{}`", form.usage()))
}

pub(crate) fn no_variable(span: Span) -> Diagnostic {
    Diagnostic::error("`deriv` is by a variable")
        .with_label(span, "this is not a parameter or a `let` of data")
        .with_reason("`deriv e x` differentiates the expression `e` by the variable `x` that occurs in it")
        .with_help("give it a name by `let`, or pass a function: `derivative (fun x -> ...) a`")
}

pub(crate) fn constant_in_deriv(name: &Name, at: Span, x: &Name, span: Span) -> Diagnostic {
    Diagnostic::warning(format!("`{name}` is a constant in this derivative by `{x}`"))
        .with_label(span, "differentiated here")
        .with_label(at, format!("computed from `{x}` before"))
        .with_reason(format!(
            "`deriv e {x}` differentiates what is written in `e`; other variables in it are constants"
        ))
        .with_help(format!("move the `let` of `{name}` into `e`, or rename it with `_` if it is meant"))
}

pub(crate) fn unused(name: &Name, span: Span) -> Diagnostic {
    Diagnostic::warning(format!("`{name}` is never used"))
        .with_label(span, "bound here")
        .with_help(format!("remove it, or call it `_{name}`"))
}

pub(crate) fn field_twice(name: &Name, span: Span, first: Span) -> Diagnostic {
    Diagnostic::error(format!("the field `{name}` occurs twice"))
        .with_label(span, "again here")
        .with_label(first, "first here")
}

pub(crate) fn type_too_large(span: Span, name: &Name) -> Diagnostic {
    Diagnostic::limitation("a type is too large to be checked")
        .with_label(span, format!("the type of {name}"))
        .with_reason(format!("types may have {} parts at most", super::table::MAX_TYPE_NODES))
}

/// Call with too many arguments.
pub(crate) struct Excess<'a> {
    pub callee: &'a str,
    pub head: Span,
    /// Type of the callee.
    pub ty: TyId,
    pub n_params: usize,
    pub n_args: usize,
    /// Position of the first argument that is too many.
    pub extra: Span,
}

pub(crate) fn too_many_arguments(table: &Table, call: &Excess<'_>, origin: Option<(Name, Span)>) -> Diagnostic {
    let Excess { callee, head, ty, n_params, n_args, extra } = *call;
    let shown = show(table, ty);
    let mut message = if n_params == 0 {
        Diagnostic::error(format!("{callee} is not a function"))
            .with_label(head, format!("this is `{shown}`"))
            .with_label(extra, "it is applied to this")
            .with_help("is an operator missing between the two? to multiply, write `*`")
    } else {
        let takes = if n_params == 1 { "1 argument".to_owned() } else { format!("{n_params} arguments") };
        Diagnostic::error(format!("{callee} takes {takes} and gets {n_args}"))
            .with_label(extra, "one too many")
            .with_label(head, format!("this is `{shown}`"))
            .with_help("are there parentheses missing around an argument?")
    };
    if let Some((name, at)) = origin {
        message = message.with_label(at, format!("`{name}` comes from here"));
    }
    message
}

/// Returns the name of a callee in messages.
pub(crate) fn callee(head: &ExprKind) -> String {
    match head {
        ExprKind::Name(name) => format!("`{name}`"),
        ExprKind::Operator(infix) => format!("`{}`", symbol(*infix)),
        ExprKind::Fun { .. } => "this function".to_owned(),
        _ => "this".to_owned(),
    }
}

pub(crate) fn argument_label(callee: &str, k: usize, n: usize) -> String {
    if n == 1 {
        return format!("{callee} asks for it");
    }
    let ordinal = match k {
        0 => "first".to_owned(),
        1 => "second".to_owned(),
        2 => "third".to_owned(),
        _ => format!("{}th", k + 1),
    };
    format!("{callee} asks for it as the {ordinal} argument")
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

/// Maximum length of a name that is compared with others: comparisons take the product of their lengths.
const MAX_COMPARED: usize = 64;

/// Returns the name in `known` that `name` was probably meant to be; the first of the nearest. `None` for a long name.
#[must_use]
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if name.len() > MAX_COMPARED {
        return None;
    }
    let limit = (name.chars().count() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in known.iter().filter(|known| known.len() <= 2 * MAX_COMPARED) {
        let distance = distance(name, candidate);
        // A single-letter name is not similar to another one.
        if distance <= limit && distance < name.chars().count() && best.is_none_or(|(d, _)| distance < d) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Returns the Levenshtein distance, ignoring case.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    if a.len().abs_diff(b.len()) > a.len() / 3 + 1 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
