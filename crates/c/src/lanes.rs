//! C as a target language for several points in lanes.
//!
//! In: the same as for one point, and the values that differ between points. Out: a function on a block of points, in
//! GNU C's vectors: a number is a vector `cr_v` with an element for each point, a varying truth value a vector `cr_m`
//! of 0 and 1. Arguments and results are packed: element `k` of all points of the block is one vector. Uniform integers
//! remain scalars.
//!
//! **Operators.** Arithmetic and comparisons use the C spelling of the operator's row. `a ? b : c` becomes a blend of
//! two computed values. All other operators, such as functions of `math.h`, are computed lane by lane. So each lane has
//! the bits of one point.

use crate::language::{C, checked_sum, code_name, mul_add, parameter_list};
use crate::precision::InC;
use crate::{literal, reserved};
use chainrule_base::{Arena, Poly};
use chainrule_kernel::{BufferId, Class, Place, Reg, Signs};
use chainrule_ops::{Op, Type};
use chainrule_text::{At, Binding, Language, Param, Piece, Precision, Terms, Unit, Whole, body, fill};
use std::fmt::Write;

/// C for a block of points, as a [`Language`](chainrule_text::Language).
pub(crate) struct Lanes<'a> {
    /// C for one point, which writes everything uniform.
    pub one: C<'a>,
    /// Whether each register varies between points.
    pub varying: &'a Arena<Reg, bool>,
    /// Unit of the function for one point, whose codes are returned.
    pub scalar: &'a Unit<'a>,
}

/// Returns types and macros for blocks of `lanes` points.
pub(crate) fn definitions(lanes: usize, precision: Precision) -> String {
    let (real, mask) = match precision {
        Precision::Double => ("double", "int64_t"),
        Precision::Single => ("float", "int32_t"),
    };
    let bytes = lanes * precision.bytes(Class::Real);
    let each = vec!["(x)"; lanes].join(", ");
    let attributes = |ty: &str| format!("__attribute__((vector_size({bytes}), aligned(sizeof({ty})), may_alias))");
    format!(
        "#define CR_LANES {lanes}\n\
         #ifdef __GNUC__\n\
         /* All functions that pass vectors are static. */\n\
         #pragma GCC diagnostic ignored \"-Wpsabi\"\n\
         typedef {real} cr_v {};\n\
         typedef {mask} cr_m {};\n\
         #define CR_V(x) ((cr_v){{{each}}})\n\
         #define CR_M(x) ((cr_m){{{each}}})\n\
         #define CR_SELECT(m, a, b) ((cr_v)(((m) & (cr_m)(a)) | (~(m) & (cr_m)(b))))\n\
         #endif\n\n",
        attributes(real),
        attributes(mask)
    )
}

const SPREAD: &str = "\
static inline void cr_spread(int64_t *to, const int64_t *from, int64_t len) {
    for (int64_t k = 0; k < len; k++)
        for (int l = 0; l < CR_LANES; l++) to[k * CR_LANES + l] = from[k];
}
";

const PUT: &str = "\
static inline void cr_put(int64_t *to, cr_m m) {
    for (int l = 0; l < CR_LANES; l++) to[l] = m[l];
}
";

const FILL: &str = "\
static inline void cr_fill(int64_t *to, int64_t value) {
    for (int l = 0; l < CR_LANES; l++) to[l] = value;
}
";

const TO_REAL: &str = "\
static inline cr_v cr_each_to_real(cr_m m) {
    cr_v r = {0};
    for (int l = 0; l < CR_LANES; l++) r[l] = (double)m[l];
    return r;
}
";

/// Returns the declaration of a parameter of a function on a block.
fn declaration(unit: &Unit<'_>, param: Param, is_size: bool) -> String {
    let name = unit.param_name(param);
    let class = |buffer: BufferId| unit.kernel.buffers[buffer].class;
    match param {
        Param::Size(_) => format!("int64_t {name}"),
        Param::Input(_) if is_size => format!("int64_t {name}"),
        Param::Input(i) => {
            let port = &unit.kernel.inputs[i];
            match (class(port.buffer), port.shape.is_empty()) {
                (Class::Real, true) => format!("const cr_v *cr_{name}"),
                (Class::Real, false) => format!("const cr_v *{name}"),
                (Class::Int, _) => format!("const int64_t *{name}"),
            }
        }
        Param::Output(i) => match class(unit.kernel.outputs[i].buffer) {
            Class::Real => format!("cr_v *restrict {name}"),
            Class::Int => format!("int64_t *restrict {name}"),
        },
        Param::Work => format!("cr_v *restrict {name}"),
        Param::IntWork => format!("int64_t *restrict {name}"),
    }
}

/// Returns whether a parameter is an integer that sizes depend on.
pub(crate) fn is_size(unit: &Unit<'_>, param: Param) -> bool {
    let Param::Input(input) = param else { return false };
    let source = chainrule_kernel::SizeSource::Value { input };
    unit.kernel.sizes.iter().any(|size| size.source == source)
}

/// Returns whether a parameter is an input that is a single number.
fn is_number(unit: &Unit<'_>, param: Param) -> bool {
    let Param::Input(i) = param else { return false };
    let port = &unit.kernel.inputs[i];
    port.shape.is_empty() && unit.kernel.buffers[port.buffer].class == Class::Real
}

impl Lanes<'_> {
    fn type_of(&self, unit: &Unit<'_>, r: Reg) -> &'static str {
        match (unit.kernel.regs[r], self.varying[r]) {
            (Class::Real, _) => "cr_v",
            (Class::Int, true) => "cr_m",
            (Class::Int, false) => "int64_t",
        }
    }

    fn base(&self, unit: &Unit<'_>, buffer: BufferId) -> String {
        match unit.kernel.buffers[buffer].place {
            Place::Input(input) if is_number(unit, Param::Input(input)) => {
                format!("(&{})", unit.param_name(Param::Input(input)))
            }
            Place::Input(input) => unit.param_name(Param::Input(input)).to_owned(),
            Place::Output(output) => unit.param_name(Param::Output(output)).to_owned(),
            Place::Workspace(_) => body::buffer_name(buffer),
        }
    }

    /// Returns whether a buffer holds packed integers of all points.
    fn is_packed_ints(unit: &Unit<'_>, buffer: BufferId) -> bool {
        let buffer = &unit.kernel.buffers[buffer];
        buffer.class == Class::Int && matches!(buffer.place, Place::Output(_))
    }

    fn parameters(&self, unit: &Unit<'_>, params: impl IntoIterator<Item = Param>) -> String {
        let declarations: Vec<String> = params.into_iter().map(|p| declaration(unit, p, is_size(unit, p))).collect();
        parameter_list(&declarations)
    }

    /// Loads scalar inputs, which are passed by address.
    fn numbers(unit: &Unit<'_>, params: impl IntoIterator<Item = Param>, text: &mut String) {
        for param in params.into_iter().filter(|p| is_number(unit, *p)) {
            let name = unit.param_name(param);
            let _ = writeln!(text, "    const cr_v {name} = *cr_{name};");
        }
    }

    /// Returns the function that applies `template` lane by lane; the result and the arguments are truth values or
    /// numbers.
    fn each(&mut self, name: &str, template: &str, args: &[Type], result: Type) -> String {
        let ty = |t: Type| if t == Type::Bool { "cr_m" } else { "cr_v" };
        let params: Vec<String> = args.iter().enumerate().map(|(k, t)| format!("{} a{k}", ty(*t))).collect();
        let value = fill(template, |_, _, k| match args.get(k) {
            Some(Type::Bool) => format!("(a{k}[l] != 0)"),
            _ => format!("a{k}[l]"),
        });
        self.one.needs.helper(format!(
            "static inline {} cr_each_{name}({}) {{\n    {0} r = {{0}};\n    for (int l = 0; l < CR_LANES; l++) r[l] = {value};\n    return r;\n}}\n",
            ty(result),
            parameter_list(&params),
        ));
        format!("cr_each_{name}")
    }

    /// Returns a truth value of all points.
    fn truth(&self, r: Reg, text: &str) -> String {
        if self.varying[r] { text.to_owned() } else { format!("CR_M({text} != 0)") }
    }
}

impl Language for Lanes<'_> {
    fn is_reserved(name: &str) -> bool {
        reserved::is_reserved(name)
    }

    fn family(name: &str) -> Vec<String> {
        C::family(name)
    }

    fn may_stand_beside(function: &str, name: &str) -> bool {
        C::may_stand_beside(function, name)
    }

    fn real(&mut self, value: f64) -> String {
        format!("CR_V({})", self.one.real(value))
    }

    fn int(&self, value: i64) -> String {
        literal::int(value)
    }

    fn declare(&self, unit: &Unit<'_>, r: Reg, name: &str, value: Option<&str>, binding: Binding) -> String {
        let ty = self.type_of(unit, r);
        let qualifier = if binding == Binding::Assigned { "" } else { "const " };
        match value {
            Some(value) => format!("{qualifier}{ty} {name} = {value};"),
            None => format!("{ty} {name};"),
        }
    }

    fn natural(value: &str) -> String {
        C::natural(value)
    }

    fn declare_int(&self, name: &str, value: &str) -> String {
        self.one.declare_int(name, value)
    }

    fn converted(&mut self, unit: &Unit<'_>, of: Reg, to: Reg, value: String) -> String {
        let spread = unit.kernel.regs[to] == Class::Int && self.varying[to] && !self.varying[of];
        if spread { format!("CR_M({value})") } else { value }
    }

    fn checked_sum(&mut self, name: &str, terms: &Terms, fresh: &str, fail: &str) -> Vec<String> {
        self.one.needs.checked();
        checked_sum(name, terms, fresh, fail)
    }

    fn fail(&self, unit: &Unit<'_>, code: usize) -> String {
        format!("return {};", code_name(self.scalar, &unit.codes[code]))
    }

    fn fail_if(&self, condition: &str, fail: &str) -> String {
        self.one.fail_if(condition, fail)
    }

    fn check_size(&self, name: &str, limit: i64, fail: &str) -> Vec<String> {
        self.one.check_size(name, limit, fail)
    }

    fn greatest_length(&self) -> &'static str {
        self.one.greatest_length()
    }

    fn space(&self, _unit: &Unit<'_>, r: Reg) -> usize {
        usize::from(!self.varying[r])
    }

    fn out_of_range(&mut self, index: &str, len: &str) -> String {
        self.one.out_of_range(index, len)
    }

    fn slot(&self, unit: &Unit<'_>, r: Reg, slot: usize) -> String {
        match self.type_of(unit, r) {
            "cr_v" => format!("{}[{slot}]", unit.work),
            "cr_m" => format!("((cr_m *){})[{slot}]", unit.work),
            _ => format!("{}[{slot}]", unit.iwork),
        }
    }

    fn pointer(&self, unit: &Unit<'_>, buffer: BufferId, name: &str, offset: &Poly<Reg>) -> Option<String> {
        let class = unit.kernel.buffers[buffer].class;
        let (ty, work) = match class {
            Class::Real => ("cr_v", &unit.work),
            Class::Int => ("int64_t", &unit.iwork),
        };
        Some(if unit.workspace(class).is_zero() {
            // All buffers are empty, and no code that reads or writes them runs.
            let zero = if class == Class::Real { "{{0}}" } else { "{0}" };
            format!("{ty} *const {name} = ({ty}[1]){zero};")
        } else {
            format!("{ty} *const {name} = {work} + ({});", unit.formula(offset))
        })
    }

    fn load(&mut self, unit: &Unit<'_>, buffer: BufferId, at: &At) -> String {
        format!("{}[{}]", self.base(unit, buffer), at.text)
    }

    fn store(&mut self, unit: &Unit<'_>, buffer: BufferId, at: &At, value: Reg, text: &str) -> String {
        let base = self.base(unit, buffer);
        if !Self::is_packed_ints(unit, buffer) {
            return format!("{base}[{}] = {text};", at.text);
        }
        let (helper, function) = if self.varying[value] { (PUT, "cr_put") } else { (FILL, "cr_fill") };
        self.one.needs.helper(helper);
        format!("{function}({base} + ({}) * CR_LANES, {text});", at.text)
    }

    fn copy(&mut self, unit: &Unit<'_>, to: (BufferId, &At), from: (BufferId, &At), len: &At) -> String {
        let place = |(buffer, at): (BufferId, &At), factor: &str| match at.constant {
            Some(0) => self.base(unit, buffer),
            _ => format!("{} + ({}){factor}", self.base(unit, buffer), at.text),
        };
        if Self::is_packed_ints(unit, to.0) {
            let line = format!("cr_spread({}, {}, {});", place(to, " * CR_LANES"), place(from, ""), len.text);
            self.one.needs.helper(SPREAD);
            return line;
        }
        let size = if unit.kernel.buffers[to.0].class == Class::Real { "sizeof(cr_v)" } else { "8" };
        let guard = if len.constant.is_some() { String::new() } else { format!("if ({} > 0) ", len.text) };
        let line = format!("{guard}memcpy({}, {}, (size_t)({}) * {size});", place(to, ""), place(from, ""), len.text);
        self.one.needs.string = true;
        line
    }

    fn open_for(&self, name: &str, is_used: bool, bound: &str) -> String {
        self.one.open_for(name, is_used, bound)
    }

    fn open_while(&self, counter: &str) -> String {
        self.one.open_while(counter)
    }

    fn break_unless(&self, holds: &str) -> String {
        self.one.break_unless(holds)
    }

    fn open_if(&self, condition: &str) -> String {
        self.one.open_if(condition)
    }

    fn op(&mut self, unit: &Unit<'_>, dst: Reg, op: Op, args: &[(Reg, String)]) -> String {
        if unit.kernel.regs[dst] == Class::Int && !self.varying[dst] {
            return self.one.op(unit, dst, op, args);
        }
        let row = op.row();
        let template = self.one.spelling(op);
        let texts: Vec<String> = args
            .iter()
            .zip(row.args)
            .map(|((r, text), ty)| if *ty == Type::Bool { self.truth(*r, text) } else { text.clone() })
            .collect();
        let filled = |part: &str| fill(part, |_, _, k| texts.get(k).cloned().unwrap_or_default());
        if let Some((condition, (yes, no))) =
            template.split_once(" ? ").and_then(|(condition, rest)| Some((condition, rest.split_once(" : ")?)))
        {
            // A comparison of vectors sets all bits if it holds; a truth value is then 1.
            let is_truth = row.args.first() == Some(&Type::Bool);
            let mask =
                if is_truth { format!("-{}", filled(condition)) } else { format!("(cr_m)({})", filled(condition)) };
            return format!("CR_SELECT({mask}, {}, {})", filled(yes), filled(no));
        }
        if template.contains(['(', '!', '&', '|', '?']) {
            let function = self.each(row.name, &template, row.args, row.result);
            return format!("{function}({})", texts.join(", "));
        }
        let value = filled(&template);
        if row.result == Type::Bool { format!("-(cr_m)({value})") } else { value }
    }

    fn mul_add(&mut self, signs: Signs, args: &[String; 3]) -> String {
        self.one.needs.math = true;
        let template = self.one.precision.code(mul_add(signs));
        let function = self.each(signs.name(), &template, &[Type::Num; 3], Type::Num);
        format!("{function}({})", args.join(", "))
    }

    fn int_op(
        &mut self,
        op: Op,
        args: &[String],
        fail: Option<&str>,
        fresh: &str,
        needed: bool,
    ) -> (Vec<String>, String) {
        self.one.int_op(op, args, fail, fresh, needed)
    }

    fn to_real(&mut self, unit: &Unit<'_>, src: Reg, text: &str) -> String {
        if !self.varying[src] {
            return format!("CR_V({})", self.one.to_real(unit, src, text));
        }
        let helper = self.one.precision.code(TO_REAL);
        self.one.needs.helper(helper);
        format!("cr_each_to_real({text})")
    }

    // Points with integers of their own run one by one.
    fn to_int(&mut self, text: &str) -> String {
        self.one.to_int(text)
    }

    fn external(&mut self, unit: &Unit<'_>, function: usize, args: &[String]) -> String {
        let places: Vec<String> = (0..args.len()).map(|k| format!("{{{k}}}")).collect();
        let template = self.one.external(unit, function, &places);
        let name = template.split('(').next().unwrap_or("").to_owned();
        let each = self.each(&name, &template, &vec![Type::Num; args.len()], Type::Num);
        format!("{each}({})", args.join(", "))
    }

    fn piece(&mut self, unit: &Unit<'_>, piece: &Piece<'_>) -> String {
        self.one.needs.pieces = true;
        let (result, end) = if piece.can_fail { ("int", "    return 0;\n") } else { ("void", "") };
        let params = self.parameters(unit, piece.params.iter().copied());
        let mut text = format!("static CR_PIECE {result} {}({params})\n{{\n", piece.name);
        Self::numbers(unit, piece.params.iter().copied(), &mut text);
        for line in piece.pointers {
            let _ = writeln!(text, "    {line}");
        }
        let _ = write!(text, "{}{end}}}\n\n", piece.lines);
        text
    }

    fn call(&self, unit: &Unit<'_>, piece: &Piece<'_>, fresh: &str) -> Vec<String> {
        let argument = |p: &Param| {
            if is_number(unit, *p) { format!("&{}", unit.param_name(*p)) } else { unit.param_name(*p).to_owned() }
        };
        let arguments: Vec<String> = piece.params.iter().map(argument).collect();
        let call = format!("{}({})", piece.name, arguments.join(", "));
        if piece.can_fail {
            vec![format!("const int {fresh} = {call};"), format!("if ({fresh} != 0) return {fresh};")]
        } else {
            vec![format!("{call};")]
        }
    }

    fn whole(&mut self, unit: &Unit<'_>, whole: &Whole<'_>) -> String {
        let params = unit.params();
        let mut text = format!("static int {}({})\n{{\n", unit.name, self.parameters(unit, params.iter().copied()));
        Self::numbers(unit, params.iter().copied(), &mut text);
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
