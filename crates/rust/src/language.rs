//! Rust as a target language.
//!
//! In: names, expressions, operators. Out: declarations, statements and functions; their requirements are collected in
//! [`Needs`].
//!
//! **Arrays.** An array of known length is passed as a reference to an array of that length, so that the compiler knows
//! that constant indices are in range. Buffers of the workspace are offsets into it.

use crate::functions::{self, Library};
use crate::literal;
use crate::reserved::is_reserved;
use chainrule_base::Poly;
use chainrule_kernel::{BufferId, Class, Place, Reg, Signs};
use chainrule_mathfun::Function;
use chainrule_mathfun::source::Fma;
use chainrule_ops::{Op, TRUNCATE_RUST, Type};
use chainrule_text::unit::Reason;
use chainrule_text::{At, Binding, Language, Param, Piece, Precision, Terms, Unit, Whole, body, fill};
use std::fmt::Write;

/// Requirements of the text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Needs {
    /// Distinct definitions of helpers, in the order of their first use.
    pub helpers: Vec<String>,
    /// The crate `libm`.
    pub libm: bool,
    /// Methods of the standard library.
    pub std: bool,
    /// Distinct functions of Chainrule's own, in the order of their first use.
    pub elementary: Vec<Function>,
}

impl Needs {
    pub fn helper(&mut self, helper: impl Into<String>) {
        let helper = helper.into();
        if !self.helpers.contains(&helper) {
            self.helpers.push(helper);
        }
    }
}

impl Needs {
    fn elementary(&mut self, function: Function, library: Library) {
        self.std |= library == Library::Own(Fma::Standard);
        if !self.elementary.contains(&function) {
            self.elementary.push(function);
        }
    }
}

/// A negative length is that of a loop that does not run.
pub(crate) const LEN: &str = "\
fn cr_len(len: i64) -> usize {
    usize::try_from(len.max(0)).unwrap_or(usize::MAX)
}
";

const RANGE: &str = "\
fn cr_range(at: i64, len: i64) -> core::ops::Range<usize> {
    at as usize..(at + len) as usize
}
";

/// Rust as a [`Language`].
pub(crate) struct Rust<'a> {
    pub needs: &'a mut Needs,
    pub precision: Precision,
    pub library: Library,
    /// Lengths of inputs, outputs and workspaces, in this order.
    pub lengths: Vec<At>,
}

/// Returns the type of elements of a class.
pub(crate) fn type_name(class: Class, precision: Precision) -> &'static str {
    match class {
        Class::Real => literal::type_name(precision),
        Class::Int => "i64",
    }
}

/// Visibility of a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// The function that callers see.
    Public,
    /// The function of a piece.
    Private,
}

/// Returns the declaration of a parameter.
pub(crate) fn declaration(unit: &Unit<'_>, param: Param, visibility: Visibility, precision: Precision) -> String {
    let kernel = unit.kernel;
    let name = unit.param_name(param);
    let array = |class: Class, len: &Poly<Reg>| {
        let ty = type_name(class, precision);
        match len.as_constant().filter(|len| visibility == Visibility::Private && *len >= 0) {
            Some(len) => format!("[{ty}; {len}]"),
            None => format!("[{ty}]"),
        }
    };
    match param {
        Param::Size(_) if visibility == Visibility::Public => format!("{name}: usize"),
        Param::Size(_) => format!("{name}: i64"),
        Param::Input(i) => {
            let buffer = &kernel.buffers[kernel.inputs[i].buffer];
            if kernel.inputs[i].shape.is_empty() {
                format!("{name}: {}", type_name(buffer.class, precision))
            } else {
                format!("{name}: &{}", array(buffer.class, &buffer.len))
            }
        }
        Param::Output(i) => {
            let buffer = &kernel.buffers[kernel.outputs[i].buffer];
            if kernel.outputs[i].shape.is_empty() {
                format!("{name}: &mut {}", type_name(buffer.class, precision))
            } else {
                format!("{name}: &mut {}", array(buffer.class, &buffer.len))
            }
        }
        Param::Work => format!("{name}: &mut {}", array(Class::Real, &unit.workspace(Class::Real))),
        Param::IntWork => format!("{name}: &mut {}", array(Class::Int, &unit.workspace(Class::Int))),
    }
}

/// Storage of a buffer's elements.
enum Base<'a> {
    /// An input by value.
    Scalar(&'a str),
    /// An output that is a single number.
    Result(&'a str),
    /// The elements of an array.
    Array(&'a str),
    /// A part of a workspace.
    Work(&'a str),
    /// An absent workspace: the buffer is never read or written.
    Nothing(BufferId),
}

fn base<'u>(unit: &'u Unit<'_>, buffer: BufferId) -> Base<'u> {
    let class = unit.kernel.buffers[buffer].class;
    match unit.kernel.buffers[buffer].place {
        Place::Input(input) => {
            let name = unit.param_name(Param::Input(input));
            if unit.kernel.inputs[input].shape.is_empty() { Base::Scalar(name) } else { Base::Array(name) }
        }
        Place::Output(output) => {
            let name = unit.param_name(Param::Output(output));
            if unit.kernel.outputs[output].shape.is_empty() { Base::Result(name) } else { Base::Array(name) }
        }
        Place::Workspace(_) if unit.workspace(class).is_zero() => Base::Nothing(buffer),
        Place::Workspace(_) => Base::Work(unit.param_name(work(class))),
    }
}

/// Returns the workspace of a class.
fn work(class: Class) -> Param {
    match class {
        Class::Real => Param::Work,
        Class::Int => Param::IntWork,
    }
}

/// Returns the offset of a buffer in its workspace if it is a constant.
fn constant_offset(unit: &Unit<'_>, buffer: BufferId) -> Option<i64> {
    let Place::Workspace(offset) = &unit.kernel.buffers[buffer].place else { return None };
    offset.add(&unit.slots(unit.kernel.buffers[buffer].class)).as_constant()
}

/// Returns the address of an element in the storage of its buffer.
fn address(unit: &Unit<'_>, buffer: BufferId, at: &At) -> At {
    if !matches!(base(unit, buffer), Base::Work(_)) {
        return at.clone();
    }
    match (constant_offset(unit, buffer), at.constant) {
        (Some(offset), Some(at)) => At { text: literal::int(offset + at), constant: Some(offset + at) },
        (Some(0), None) => at.clone(),
        (Some(offset), None) => At { text: format!("{offset} + {}", at.text), constant: None },
        (None, Some(0)) => At { text: body::buffer_name(buffer), constant: None },
        (None, _) => At { text: format!("{} + {}", body::buffer_name(buffer), at.text), constant: None },
    }
}

/// Returns an address as an index.
fn index(at: &At) -> String {
    match at.constant {
        Some(value) if value >= 0 => value.to_string(),
        _ if at.text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => format!("{} as usize", at.text),
        _ => format!("({}) as usize", at.text),
    }
}

fn element(unit: &Unit<'_>, buffer: BufferId, at: &At) -> String {
    let index = index(&address(unit, buffer, at));
    match base(unit, buffer) {
        Base::Scalar(name) => name.to_owned(),
        Base::Result(name) => format!("*{name}"),
        Base::Array(name) | Base::Work(name) => format!("{name}[{index}]"),
        Base::Nothing(buffer) => format!("{}[{index}]", body::buffer_name(buffer)),
    }
}

impl Rust<'_> {
    fn parameters(&self, unit: &Unit<'_>, params: impl IntoIterator<Item = Param>, visibility: Visibility) -> String {
        let declarations = params.into_iter().map(|p| declaration(unit, p, visibility, self.precision));
        declarations.collect::<Vec<String>>().join(", ")
    }

    /// Writes the check of an array's length, and if the array is used, its conversion to an array of that length.
    fn check_length(&mut self, unit: &Unit<'_>, param: Param, len: &At, is_used: bool, text: &mut String) {
        let name = unit.param_name(param);
        let failure = format!("Failure::Length({name:?})");
        let (mutable, class, is_work) = match param {
            Param::Input(i) => ("", unit.kernel.buffers[unit.kernel.inputs[i].buffer].class, false),
            Param::Output(i) => ("mut ", unit.kernel.buffers[unit.kernel.outputs[i].buffer].class, false),
            Param::Work => ("mut ", Class::Real, true),
            Param::IntWork | Param::Size(_) => ("mut ", Class::Int, true),
        };
        let constant = len.constant.and_then(|len| usize::try_from(len).ok());
        let wanted = constant.map_or_else(
            || {
                self.needs.helper(LEN);
                format!("cr_len({})", len.text)
            },
            |len| len.to_string(),
        );
        let ty = type_name(class, self.precision);
        let line = match (constant, is_work, is_used) {
            (_, false, false) | (None, false, true) if wanted == "0" => {
                format!("if !{name}.is_empty() {{ return Err({failure}); }}")
            }
            (_, false, false) | (None, false, true) => {
                format!("if {name}.len() != {wanted} {{ return Err({failure}); }}")
            }
            (_, true, false) if wanted == "0" => return,
            (_, true, false) if wanted == "1" => format!("if {name}.is_empty() {{ return Err({failure}); }}"),
            (_, true, false) => format!("if {name}.len() < {wanted} {{ return Err({failure}); }}"),
            (Some(_), false, true) => {
                format!(
                    "let Ok({name}) = <&{mutable}[{ty}; {wanted}]>::try_from({name}) else {{ return Err({failure}) }};"
                )
            }
            (Some(_), true, true) => {
                format!("let Some({name}) = {name}.first_chunk_mut::<{wanted}>() else {{ return Err({failure}) }};")
            }
            (None, true, true) => {
                format!("let Some({name}) = {name}.get_mut(..{wanted}) else {{ return Err({failure}) }};")
            }
        };
        let _ = writeln!(text, "    {line}");
    }
}

impl Language for Rust<'_> {
    const CHECKS_LENGTHS: bool = true;

    fn is_reserved(name: &str) -> bool {
        is_reserved(name)
    }

    fn family(name: &str) -> Vec<String> {
        vec![name.to_owned(), format!("{name}_work_len"), format!("{name}_iwork_len")]
    }

    fn may_stand_beside(function: &str, name: &str) -> bool {
        !name.starts_with(&format!("{function}_part"))
    }

    fn real(&mut self, value: f64) -> String {
        literal::real(value, self.precision)
    }

    fn int(&self, value: i64) -> String {
        literal::int(value)
    }

    fn declare(&self, unit: &Unit<'_>, r: Reg, name: &str, value: Option<&str>, binding: Binding) -> String {
        let ty = type_name(unit.kernel.regs[r], self.precision);
        match value {
            Some(value) if binding == Binding::Assigned => format!("let mut {name}: {ty} = {value};"),
            Some(value) => format!("let {name}: {ty} = {value};"),
            None => format!("let {name}: {ty};"),
        }
    }

    fn natural(value: &str) -> String {
        format!("({value}).max(0)")
    }

    fn declare_int(&self, name: &str, value: &str) -> String {
        format!("let {name}: i64 = {value};")
    }

    fn checked_sum(&mut self, name: &str, terms: &Terms, fresh: &str, fail: &str) -> Vec<String> {
        let receiver = |text: &str| match text.strip_prefix('-') {
            _ if !text.ends_with(|c: char| c.is_ascii_digit()) || text.contains('_') => text.to_owned(),
            Some(_) => format!("({text}_i64)"),
            None => format!("{text}_i64"),
        };
        let fail = fail.trim_end_matches(';');
        let mut lines = Vec::new();
        for (idx, factors) in terms.iter().enumerate() {
            let target = if idx == 0 { name } else { fresh };
            let mut value = factors[0].as_str();
            for factor in &factors[1..] {
                let product = format!("{}.checked_mul({factor})", receiver(value));
                lines.push(format!("let Some({target}) = {product} else {{ {fail} }};"));
                value = target;
            }
            if idx > 0 {
                lines.push(format!("let Some({name}) = {name}.checked_add({value}) else {{ {fail} }};"));
            } else if factors.len() == 1 {
                lines.push(format!("let {name}: i64 = {value};"));
            }
        }
        lines
    }

    fn fail(&self, unit: &Unit<'_>, code: usize) -> String {
        format!("return Err({});", failure(unit, code))
    }

    fn fail_if(&self, condition: &str, fail: &str) -> String {
        format!("if {condition} {{ {fail} }}")
    }

    fn check_size(&self, name: &str, limit: i64, fail: &str) -> Vec<String> {
        vec![
            format!("let {name} = i64::try_from({name}).unwrap_or(i64::MAX);"),
            self.fail_if(&format!("{name} > {limit}"), fail),
        ]
    }

    fn check_lengths(&mut self, _unit: &Unit<'_>, lengths: &[At]) -> Vec<String> {
        self.lengths = lengths.to_vec();
        Vec::new()
    }

    fn greatest_length(&self) -> &'static str {
        "i64::MAX / 16"
    }

    fn out_of_range(&mut self, index: &str, len: &str) -> String {
        format!("!(0..{len}).contains(&{index})")
    }

    fn slot(&self, unit: &Unit<'_>, r: Reg, slot: usize) -> String {
        format!("{}[{slot}]", unit.param_name(work(unit.kernel.regs[r])))
    }

    fn pointer(&self, unit: &Unit<'_>, buffer: BufferId, name: &str, offset: &Poly<Reg>) -> Option<String> {
        let class = unit.kernel.buffers[buffer].class;
        if unit.workspace(class).is_zero() {
            // All buffers are empty, and no code that reads or writes them runs.
            return Some(format!("let {name}: &mut [{}] = &mut [];", type_name(class, self.precision)));
        }
        offset.as_constant().is_none().then(|| format!("let {name}: i64 = {};", unit.formula(offset)))
    }

    fn load(&mut self, unit: &Unit<'_>, buffer: BufferId, at: &At) -> String {
        element(unit, buffer, at)
    }

    fn store(&mut self, unit: &Unit<'_>, buffer: BufferId, at: &At, _value: Reg, text: &str) -> String {
        format!("{} = {text};", element(unit, buffer, at))
    }

    fn copy(&mut self, unit: &Unit<'_>, to: (BufferId, &At), from: (BufferId, &At), len: &At) -> String {
        self.needs.helper(RANGE);
        let (to_at, from_at) = (address(unit, to.0, to.1), address(unit, from.0, from.1));
        let range = |at: &At| format!("cr_range({}, {})", at.text, len.text);
        let whole = |buffer, mutable: bool| match base(unit, buffer) {
            Base::Scalar(name) => (name.to_owned(), format!("core::slice::from_ref(&{name})")),
            Base::Result(name) if mutable => (name.to_owned(), format!("core::slice::from_mut({name})")),
            Base::Result(name) => (name.to_owned(), format!("core::slice::from_ref({name})")),
            Base::Array(name) | Base::Work(name) => (name.to_owned(), name.to_owned()),
            Base::Nothing(buffer) => (body::buffer_name(buffer), body::buffer_name(buffer)),
        };
        let ((to_name, to), (from_name, from)) = (whole(to.0, true), whole(from.0, false));
        let copy = if to_name == from_name {
            format!("{to}.copy_within({}, {});", range(&from_at), index(&to_at))
        } else {
            format!("{to}[{}].copy_from_slice(&{from}[{}]);", range(&to_at), range(&from_at))
        };
        if len.constant.is_some() { copy } else { format!("if {} > 0 {{ {copy} }}", len.text) }
    }

    fn open_for(&self, name: &str, is_used: bool, bound: &str) -> String {
        // Methods need a type, which a literal does not have.
        let suffix = if bound.parse::<i64>().is_ok() { "_i64" } else { "" };
        format!("for {} in 0..{bound}{suffix} {{", if is_used { name } else { "_" })
    }

    fn open_while(&self, counter: &str) -> String {
        format!("for {counter} in 0_i64.. {{")
    }

    fn break_unless(&self, holds: &str) -> String {
        format!("if {holds} == 0 {{ break; }}")
    }

    fn open_if(&self, condition: &str) -> String {
        format!("if {condition} {{")
    }

    fn op(&mut self, _unit: &Unit<'_>, _dst: Reg, op: Op, args: &[(Reg, String)]) -> String {
        let row = op.row();
        let call = functions::call(op, self.library, self.precision);
        self.needs.libm |= call.needs_libm();
        self.needs.std |= call.needs_std();
        if let Some(function) = call.elementary {
            self.needs.elementary(function, self.library);
        }
        if let Some(helper) = &call.helper {
            self.needs.helper(helper.clone());
        }
        let value = fill(&call.template, |before, after, place| {
            let Some((_, text)) = args.get(place) else { return String::new() };
            if row.args[place] == Type::Bool {
                return if before.ends_with('!') { format!("({text} != 0)") } else { format!("{text} != 0") };
            }
            argument(text, before, after, self.precision)
        });
        if row.result == Type::Bool { format!("i64::from({value})") } else { value }
    }

    fn mul_add(&mut self, signs: Signs, args: &[String; 3]) -> String {
        let call = functions::mul_add(signs, self.library, self.precision);
        self.needs.libm |= call.needs_libm();
        self.needs.std |= call.needs_std();
        fill(&call.template, |before, after, place| argument(&args[place], before, after, self.precision))
    }

    fn int_op(
        &mut self,
        op: Op,
        args: &[String],
        fail: Option<&str>,
        fresh: &str,
        needed: bool,
    ) -> (Vec<String>, String) {
        let row = op.row();
        let Some(spelling) = row.rust_int else { return (Vec::new(), "0".to_owned()) };
        if let Some(helper) = spelling.helper {
            self.needs.helper(helper);
        }
        let value = fill(spelling.template, |_, _, place| args.get(place).cloned().unwrap_or_default());
        match fail {
            Some(fail) if needed => {
                let fail = fail.trim_end_matches(';');
                (vec![format!("let Some({fresh}) = {value} else {{ {fail} }};")], fresh.to_owned())
            }
            Some(fail) => (vec![format!("if {value}.is_none() {{ {fail} }}")], String::new()),
            None if row.result == Type::Bool => (Vec::new(), format!("i64::from({value})")),
            None => (Vec::new(), value),
        }
    }

    fn to_real(&mut self, _unit: &Unit<'_>, _src: Reg, text: &str) -> String {
        format!("{text} as {}", literal::type_name(self.precision))
    }

    fn to_int(&mut self, text: &str) -> String {
        if let Some(helper) = TRUNCATE_RUST.helper {
            self.needs.helper(helper);
        }
        let wide = || if self.precision == Precision::Double { text.to_owned() } else { format!("f64::from({text})") };
        fill(TRUNCATE_RUST.template, |_, _, _| wide())
    }

    fn external(&mut self, unit: &Unit<'_>, function: usize, args: &[String]) -> String {
        format!("super::{}({})", crate::external_name(&unit.kernel.externals[function]), args.join(", "))
    }

    fn piece(&mut self, unit: &Unit<'_>, piece: &Piece<'_>) -> String {
        let (result, end) = if piece.can_fail { (" -> Result<(), Failure>", "    Ok(())\n") } else { ("", "") };
        let params = self.parameters(unit, piece.params.iter().copied(), Visibility::Private);
        let mut text = format!("#[inline(never)]\nfn {}({params}){result} {{\n", piece.name);
        for line in piece.pointers {
            let _ = writeln!(text, "    {line}");
        }
        let _ = write!(text, "{}{end}}}\n\n", piece.lines);
        text
    }

    fn call(&self, unit: &Unit<'_>, piece: &Piece<'_>, _fresh: &str) -> Vec<String> {
        let arguments: Vec<&str> = piece.params.iter().map(|p| unit.param_name(*p)).collect();
        let question_mark = if piece.can_fail { "?" } else { "" };
        vec![format!("{}({}){question_mark};", piece.name, arguments.join(", "))]
    }

    fn whole(&mut self, unit: &Unit<'_>, whole: &Whole<'_>) -> String {
        let params = unit.params();
        let public = self.parameters(unit, params.iter().copied(), Visibility::Public);
        let mut text = format!("pub fn {}({public}) -> Result<(), Failure> {{\n{}", unit.name, whole.entry);
        let lengths = std::mem::take(&mut self.lengths);
        let n_inputs = unit.inputs.len();
        for param in params {
            let is_used = whole.used.contains(&param);
            let len = match param {
                Param::Input(i) if !unit.kernel.inputs[i].shape.is_empty() => lengths.get(i),
                Param::Output(i) if !unit.kernel.outputs[i].shape.is_empty() => lengths.get(n_inputs + i),
                Param::Work => lengths.get(n_inputs + unit.outputs.len()),
                Param::IntWork => lengths.get(n_inputs + unit.outputs.len() + 1),
                _ => None,
            };
            match len {
                Some(len) => self.check_length(unit, param, len, is_used, &mut text),
                None if !is_used => text.push_str(&format!("    let _ = {};\n", unit.param_name(param))),
                None => {}
            }
        }
        for line in whole.pointers {
            let _ = writeln!(text, "    {line}");
        }
        let _ = write!(text, "{}    Ok(())\n}}\n\n", whole.lines);
        text
    }
}

/// Returns the value of a failure.
pub(crate) fn failure(unit: &Unit<'_>, code: usize) -> String {
    let code = &unit.codes[code];
    match code.reason {
        Reason::Size => "Failure::Size".to_owned(),
        Reason::Overflow => "Failure::Overflow".to_owned(),
        Reason::Require(_) => format!("Failure::Require({:?})", code.message),
        Reason::Check(_) => format!("Failure::Check({:?})", code.message),
    }
}

/// Returns an argument for its context in a template: a literal with a method call gets a type suffix, and a minus sign
/// is parenthesised if it would bind less or follow another one.
fn argument(text: &str, before: &str, after: &str, precision: Precision) -> String {
    let is_receiver = after.starts_with('.');
    let is_literal = text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    let is_typed = is_receiver || after.starts_with(").");
    let suffix = if is_literal && is_typed { format!("_{}", literal::type_name(precision)) } else { String::new() };
    if text.starts_with('-') && (is_receiver || before.ends_with('-')) {
        format!("({text}{suffix})")
    } else {
        format!("{text}{suffix}")
    }
}
