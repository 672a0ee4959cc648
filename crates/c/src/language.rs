//! C as a target language for one point.
//!
//! In: names, expressions, operators. Out: declarations, statements and functions of C99; required helpers and headers
//! are collected in [`Needs`].

use crate::precision::InC;
use crate::{guard, literal, reserved};
use chainrule_base::Poly;
use chainrule_kernel::{BufferId, Class, Place, Reg, Signs};
use chainrule_mathfun::c as mathfun;
use chainrule_ops::{Op, Spelling, TRUNCATE_C};
use chainrule_text::unit::{Code, Reason};
use chainrule_text::{At, Binding, Language, Param, Piece, Precision, Terms, Unit, Whole, body, fill};
use std::fmt::Write;

/// Requirements of the text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Needs {
    /// Distinct definitions of helpers, in the order of their first use.
    pub helpers: Vec<String>,
    /// `math.h`.
    pub math: bool,
    /// `string.h`.
    pub string: bool,
    /// Whether there are pieces.
    pub pieces: bool,
}

impl Needs {
    pub fn helper(&mut self, helper: impl Into<String>) {
        let helper = helper.into();
        if !self.helpers.contains(&helper) {
            self.helpers.push(helper);
        }
    }

    /// Adds the requirements of `spelling`.
    fn spelling(&mut self, spelling: Spelling) {
        if let Some(helper) = spelling.helper {
            self.helper(helper);
        }
    }

    /// Adds `cr_add` and `cr_mul`.
    pub fn checked(&mut self) {
        self.helper(guard::ADD);
        self.helper(guard::MUL);
        self.helper(guard::INTO);
    }
}

/// C for one point, as a [`Language`](chainrule_text::Language).
pub(crate) struct C<'a> {
    pub needs: &'a mut Needs,
    pub precision: Precision,
    /// Whether the file defines elementary functions.
    pub own_functions: bool,
}

/// Returns the name of a code's macro.
pub(crate) fn code_name(unit: &Unit<'_>, code: &Code) -> String {
    let upper = unit.name.to_ascii_uppercase();
    match code.reason {
        Reason::Size => format!("{upper}_E_SIZE"),
        Reason::Overflow => format!("{upper}_E_OVERFLOW"),
        Reason::Require(k) => format!("{upper}_E_REQUIRE_{k}"),
        Reason::Check(k) => format!("{upper}_E_CHECK_{k}"),
    }
}

/// File of a declaration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum File {
    /// C source, with `restrict`.
    Source,
    /// Header, which C++ also reads: without `restrict`.
    Header,
}

/// Returns the declaration of a parameter.
pub(crate) fn declaration(unit: &Unit<'_>, param: Param, file: File, precision: Precision) -> String {
    let kernel = unit.kernel;
    let ty = |buffer| type_name(kernel.buffers[buffer].class, precision);
    let name = unit.param_name(param);
    let restrict = if file == File::Source { "restrict " } else { "" };
    match param {
        Param::Size(_) => format!("int64_t {name}"),
        Param::Input(i) => {
            let port = &kernel.inputs[i];
            let ty = ty(port.buffer);
            if port.shape.is_empty() { format!("{ty} {name}") } else { format!("const {ty} *{name}") }
        }
        Param::Output(i) => format!("{} *{restrict}{name}", ty(kernel.outputs[i].buffer)),
        Param::Work => format!("{} *{restrict}{name}", type_name(Class::Real, precision)),
        Param::IntWork => format!("int64_t *{restrict}{name}"),
    }
}

/// Returns the type of the values of a class.
pub(crate) fn type_name(class: Class, precision: Precision) -> &'static str {
    match class {
        Class::Real => precision.c_type(),
        Class::Int => "int64_t",
    }
}

/// Returns a fused multiply-add on doubles.
pub(crate) fn mul_add(signs: Signs) -> &'static str {
    match signs {
        Signs::Plus => "fma({0}, {1}, {2})",
        Signs::MinusSummand => "fma({0}, {1}, -{2})",
        Signs::MinusProduct => "fma(-{0}, {1}, {2})",
    }
}

/// Returns `a, b`, or `void`.
pub(crate) fn parameter_list(declarations: &[String]) -> String {
    if declarations.is_empty() { "void".to_owned() } else { declarations.join(", ") }
}

impl C<'_> {
    /// Returns the spelling of an operator, and adds its requirements.
    pub fn spelling(&mut self, op: Op) -> String {
        let row = op.row();
        self.needs.math |= row.c.template.contains('(');
        if let Some(function) = row.elementary.filter(|_| self.own_functions)
            && let Some(name) = mathfun::name(function)
        {
            for piece in mathfun::pieces(function) {
                self.needs.helper(piece.text);
            }
            self.needs.string = true;
            let places: Vec<String> = (0..row.args.len()).map(|k| format!("{{{k}}}")).collect();
            return format!("{name}({})", places.join(", "));
        }
        if let Some(helper) = row.c.helper {
            let helper = self.precision.code(helper);
            self.needs.helper(helper);
        }
        self.precision.code(row.c.template)
    }

    /// Returns the pointer to the elements of a buffer.
    fn base(&self, unit: &Unit<'_>, buffer: BufferId) -> String {
        match unit.kernel.buffers[buffer].place {
            Place::Input(input) if unit.kernel.inputs[input].shape.is_empty() => {
                format!("(&{})", unit.param_name(Param::Input(input)))
            }
            Place::Input(input) => unit.param_name(Param::Input(input)).to_owned(),
            Place::Output(output) => unit.param_name(Param::Output(output)).to_owned(),
            Place::Workspace(_) => body::buffer_name(buffer),
        }
    }

    pub(crate) fn parameters(&self, unit: &Unit<'_>, params: impl IntoIterator<Item = Param>) -> String {
        let declarations: Vec<String> =
            params.into_iter().map(|p| declaration(unit, p, File::Source, self.precision)).collect();
        parameter_list(&declarations)
    }
}

/// Sums `terms` into `name` by steps that may fail.
pub(crate) fn checked_sum(name: &str, terms: &Terms, product: &str, fail: &str) -> Vec<String> {
    let mut first = "0";
    let mut steps: Vec<String> = Vec::new();
    let mut needs_product = false;
    for (idx, factors) in terms.iter().enumerate() {
        let target = if idx == 0 { name } else { product };
        let mut value = factors[0].as_str();
        for factor in &factors[1..] {
            steps.push(format!("cr_mul({value}, {factor}, &{target})"));
            value = target;
            needs_product |= idx > 0;
        }
        if idx > 0 {
            steps.push(format!("cr_add({name}, {value}, &{name})"));
        } else if factors.len() == 1 {
            first = value;
        }
    }
    let second = if needs_product { format!(", {product} = 0") } else { String::new() };
    let mut lines = vec![format!("int64_t {name} = {first}{second};")];
    if !steps.is_empty() {
        lines.push(format!("if ({}) {fail}", steps.join(" || ")));
    }
    lines
}

impl Language for C<'_> {
    fn is_reserved(name: &str) -> bool {
        reserved::is_reserved(name)
    }

    fn is_linked(name: &str) -> bool {
        reserved::is_linked(name)
    }

    fn family(name: &str) -> Vec<String> {
        let upper = name.to_ascii_uppercase();
        vec![
            name.to_owned(),
            format!("{name}_error"),
            format!("{name}_work_size"),
            format!("{name}_iwork_size"),
            format!("{upper}_WORK_SIZE"),
            format!("{upper}_IWORK_SIZE"),
            format!("{name}_batch"),
            format!("{name}_batch_block"),
            format!("{name}_batch_work_size"),
            format!("{name}_batch_iwork_size"),
        ]
    }

    fn may_stand_beside(function: &str, name: &str) -> bool {
        !name.starts_with(&format!("{function}_part"))
            && !name.starts_with(&format!("{}_E_", function.to_ascii_uppercase()))
    }

    fn real(&mut self, value: f64) -> String {
        self.needs.math |= literal::needs_math(self.precision.round(value));
        self.precision.literal(value)
    }

    fn int(&self, value: i64) -> String {
        literal::int(value)
    }

    fn declare(&self, unit: &Unit<'_>, r: Reg, name: &str, value: Option<&str>, binding: Binding) -> String {
        let ty = type_name(unit.kernel.regs[r], self.precision);
        let qualifier = if binding == Binding::Assigned { "" } else { "const " };
        match value {
            Some(value) => format!("{qualifier}{ty} {name} = {value};"),
            None => format!("{ty} {name};"),
        }
    }

    fn natural(value: &str) -> String {
        format!("({value} > 0 ? {value} : 0)")
    }

    fn declare_int(&self, name: &str, value: &str) -> String {
        format!("const int64_t {name} = {value};")
    }

    fn checked_sum(&mut self, name: &str, terms: &Terms, fresh: &str, fail: &str) -> Vec<String> {
        self.needs.checked();
        checked_sum(name, terms, fresh, fail)
    }

    fn fail(&self, unit: &Unit<'_>, code: usize) -> String {
        format!("return {};", code_name(unit, &unit.codes[code]))
    }

    fn fail_if(&self, condition: &str, fail: &str) -> String {
        format!("if ({condition}) {fail}")
    }

    fn check_size(&self, name: &str, limit: i64, fail: &str) -> Vec<String> {
        vec![format!("if ({name} < 0 || {name} > {limit}) {fail}")]
    }

    fn greatest_length(&self) -> &'static str {
        "INT64_MAX / 16"
    }

    fn out_of_range(&mut self, index: &str, len: &str) -> String {
        self.needs.helper(guard::WITHIN);
        format!("!cr_within({index}, {len})")
    }

    fn slot(&self, unit: &Unit<'_>, r: Reg, slot: usize) -> String {
        match unit.kernel.regs[r] {
            Class::Real => format!("{}[{slot}]", unit.work),
            Class::Int => format!("{}[{slot}]", unit.iwork),
        }
    }

    fn pointer(&self, unit: &Unit<'_>, buffer: BufferId, name: &str, offset: &Poly<Reg>) -> Option<String> {
        let class = unit.kernel.buffers[buffer].class;
        let ty = type_name(class, self.precision);
        let work = if class == Class::Real { &unit.work } else { &unit.iwork };
        Some(if unit.workspace(class).is_zero() {
            // All buffers are empty, and no code that reads or writes them runs.
            format!("{ty} *const {name} = ({ty}[1]){{0}};")
        } else if offset.is_zero() {
            format!("{ty} *const {name} = {work};")
        } else {
            format!("{ty} *const {name} = {work} + ({});", unit.formula(offset))
        })
    }

    fn load(&mut self, unit: &Unit<'_>, buffer: BufferId, at: &At) -> String {
        format!("{}[{}]", self.base(unit, buffer), at.text)
    }

    fn store(&mut self, unit: &Unit<'_>, buffer: BufferId, at: &At, _value: Reg, text: &str) -> String {
        format!("{}[{}] = {text};", self.base(unit, buffer), at.text)
    }

    fn copy(&mut self, unit: &Unit<'_>, to: (BufferId, &At), from: (BufferId, &At), len: &At) -> String {
        self.needs.string = true;
        let place = |(buffer, at): (BufferId, &At)| match at.constant {
            Some(0) => self.base(unit, buffer),
            _ => format!("{} + ({})", self.base(unit, buffer), at.text),
        };
        let guard = if len.constant.is_some() { String::new() } else { format!("if ({} > 0) ", len.text) };
        let bytes = self.precision.bytes(unit.kernel.buffers[to.0].class);
        format!("{guard}memcpy({}, {}, (size_t)({}) * {bytes});", place(to), place(from), len.text)
    }

    fn open_for(&self, name: &str, _is_used: bool, bound: &str) -> String {
        format!("for (int64_t {name} = 0; {name} < {bound}; {name}++) {{")
    }

    fn open_while(&self, counter: &str) -> String {
        format!("for (int64_t {counter} = 0;; {counter}++) {{")
    }

    fn break_unless(&self, holds: &str) -> String {
        format!("if ({holds} == 0) break;")
    }

    fn open_if(&self, condition: &str) -> String {
        format!("if ({condition}) {{")
    }

    fn op(&mut self, _unit: &Unit<'_>, _dst: Reg, op: Op, args: &[(Reg, String)]) -> String {
        let template = self.spelling(op);
        fill(&template, |_, _, place| args.get(place).map(|a| a.1.clone()).unwrap_or_default())
    }

    fn mul_add(&mut self, signs: Signs, args: &[String; 3]) -> String {
        self.needs.math = true;
        let template = self.precision.code(mul_add(signs));
        let argument = |before: &str, place: usize| match args[place].as_str() {
            text if text.starts_with('-') && before.ends_with('-') => format!("({text})"),
            text => text.to_owned(),
        };
        fill(&template, |before, _, place| argument(before, place))
    }

    fn int_op(
        &mut self,
        op: Op,
        args: &[String],
        fail: Option<&str>,
        fresh: &str,
        needed: bool,
    ) -> (Vec<String>, String) {
        let mut args = args.to_vec();
        let filled =
            |template: &str, args: &[String]| fill(template, |_, _, k| args.get(k).cloned().unwrap_or_default());
        let mut before = Vec::new();
        if let (Some(fail), Some(guard)) = (fail, guard::fails(op)) {
            self.needs.spelling(guard);
            before.push(format!("if ({}) {fail}", filled(guard.template, &args)));
        }
        let Some(spelling) = op.row().c_int.filter(|_| needed) else { return (before, String::new()) };
        // Compilers warn about `i < i`.
        if args.len() == 2 && args[0] == args[1] && spelling.template.contains(['<', '>', '=']) {
            before.push(format!("const int64_t {fresh} = {};", args[1]));
            fresh.clone_into(&mut args[1]);
        }
        self.needs.spelling(spelling);
        (before, filled(spelling.template, &args))
    }

    fn to_real(&mut self, _unit: &Unit<'_>, _src: Reg, text: &str) -> String {
        format!("({}){text}", self.precision.c_type())
    }

    fn to_int(&mut self, text: &str) -> String {
        self.needs.spelling(TRUNCATE_C);
        fill(TRUNCATE_C.template, |_, _, _| text.to_owned())
    }

    fn external(&mut self, unit: &Unit<'_>, function: usize, args: &[String]) -> String {
        let name = unit.kernel.externals[function].c_name.as_deref();
        format!("{}({})", name.unwrap_or("0.0"), args.join(", "))
    }

    fn piece(&mut self, unit: &Unit<'_>, piece: &Piece<'_>) -> String {
        self.needs.pieces = true;
        let (result, end) = if piece.can_fail { ("int", "    return 0;\n") } else { ("void", "") };
        let params = self.parameters(unit, piece.params.iter().copied());
        let mut text = format!("static CR_PIECE {result} {}({params})\n{{\n", piece.name);
        for line in piece.pointers {
            let _ = writeln!(text, "    {line}");
        }
        let _ = write!(text, "{}{end}}}\n\n", piece.lines);
        text
    }

    fn call(&self, unit: &Unit<'_>, piece: &Piece<'_>, fresh: &str) -> Vec<String> {
        let arguments: Vec<&str> = piece.params.iter().map(|p| unit.param_name(*p)).collect();
        let call = format!("{}({})", piece.name, arguments.join(", "));
        if piece.can_fail {
            vec![format!("const int {fresh} = {call};"), format!("if ({fresh} != 0) return {fresh};")]
        } else {
            vec![format!("{call};")]
        }
    }

    fn whole(&mut self, unit: &Unit<'_>, whole: &Whole<'_>) -> String {
        let params = unit.params();
        let mut text = format!("int {}({})\n{{\n", unit.name, self.parameters(unit, params.iter().copied()));
        for param in params.iter().filter(|param| !whole.used.contains(param)) {
            let _ = writeln!(text, "    (void){};", unit.param_name(*param));
        }
        text.push_str(whole.entry);
        for line in whole.pointers {
            let _ = writeln!(text, "    {line}");
        }
        let _ = write!(text, "{}    return 0;\n}}\n\n", whole.lines);
        text
    }
}
