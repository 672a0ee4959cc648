//! Functions over many points.
//!
//! In: a kernel, and the function for one point. Out: `f_batch`, which takes each argument with strides, as the
//! interpreter's batches do: element `k` of point `p` is `x[p*x_point + k*x_element]`. If control is equal for all
//! points ([`uniform`](crate::uniform)), blocks of points run in lanes, and the remaining ones one by one; otherwise
//! all points run one by one. The results are those of the function for one point.
//!
//! Arguments are packed into workspace before a block, results are unpacked from there after it. With threads, OpenMP
//! distributes blocks, and each thread has a workspace of its own.

use crate::lanes::Lanes;
use crate::language::{C, Needs, code_name, parameter_list, type_name};
use crate::precision::InC;
use crate::{Batch, guard, uniform};
use chainrule_base::Poly;
use chainrule_kernel::{Class, Event, Reg, SizeSource};
use chainrule_text::describe::{is_extent, size_names};
use chainrule_text::{Code, Facts, MAX_EXTENT, Param, Pieces, Precision, Scope, Unit, Writer};
use std::fmt::Write;

/// Text for one kernel.
pub(crate) struct Written {
    /// Part of the header.
    pub header: String,
    /// Part of the source.
    pub source: String,
}

/// Parameter names of an array or a number that each point has.
struct Port {
    /// Pointer to the elements.
    name: String,
    /// Stride between points.
    point: String,
    /// Stride between elements; `None` for a single element.
    element: Option<String>,
    ty: &'static str,
    class: Class,
    len: Poly<Reg>,
}

/// A batch function under construction.
struct Writing<'a> {
    unit: &'a Unit<'a>,
    options: &'a Batch,
    precision: Precision,
    inputs: Vec<Option<Port>>,
    outputs: Vec<Port>,
    /// Function on a block of points, if there is one, and its workspaces.
    block: Option<(String, [Poly<Reg>; 2])>,
    name: String,
    n_points: String,
    n_threads: String,
    failed: String,
    work: String,
    iwork: String,
}

/// Writes the batch function of the kernel of `scalar`, the function for one point, if the options request one.
pub(crate) fn write(
    events: &[Event<'_>],
    facts: &Facts,
    scalar: &Unit<'_>,
    file: &Scope,
    options: &crate::Options,
    needs: &mut Needs,
) -> Option<Written> {
    let batch = options.batch.as_ref()?;
    let (kernel, name) = (scalar.kernel, format!("{}_batch", scalar.name));
    let mut source = String::new();
    let mut block = None;
    if let Some(varying) = uniform::varying(kernel, events, facts) {
        let pieces = Pieces::new(kernel, events, facts, options.chunk, |r| usize::from(!varying[r]));
        let unit = Unit::new::<C<'_>>(kernel, format!("{name}_block"), file, facts, pieces.n_slots);
        let one = C { needs, precision: options.precision, own_functions: options.inline_math };
        let mut language = Lanes { one, varying: &varying, scalar };
        let written = Writer::new(&unit, facts, &pieces, &mut language).write(events);
        let _ = write!(source, "#ifdef __GNUC__\n{}#endif\n\n", written.text);
        block = Some((unit.name.clone(), [unit.workspace(Class::Real), unit.workspace(Class::Int)]));
    }
    let writing = Writing::new(scalar, file, batch, options.precision, block, name);
    source.push_str(&writing.lengths());
    source.push_str(&writing.one_point());
    if writing.block.is_some() {
        source.push_str(&writing.one_block());
    }
    source.push_str(&writing.whole());
    needs.checked();
    if source.contains("cr_len(") {
        needs.helper(guard::LEN);
    }
    for (helper, name) in [(guard::GATHER, "cr_gather"), (guard::SCATTER, "cr_scatter")] {
        for (ty, suffix) in [(type_name(Class::Real, options.precision), ""), ("int64_t", "_ints")] {
            if source.contains(&format!("{name}{suffix}(")) {
                needs.helper(helper.replace("TYPE", ty).replace("SUFFIX", suffix));
            }
        }
    }
    Some(Written { header: writing.declaration(), source })
}

/// Direction of a copy between the arguments of a batch and blocks of points.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transfer {
    Gather,
    Scatter,
}

impl<'a> Writing<'a> {
    fn new(
        unit: &'a Unit<'a>,
        file: &Scope,
        options: &'a Batch,
        precision: Precision,
        block: Option<(String, [Poly<Reg>; 2])>,
        name: String,
    ) -> Self {
        let mut scope = file.clone();
        unit.sizes.iter().chain(&unit.inputs).chain(&unit.outputs).for_each(|name| scope.reserve(name.clone()));
        let mut take = |wanted: &str| {
            let name = scope.pick(wanted, "", Scope::is_free);
            scope.reserve(name.clone());
            name
        };
        let mut port = |port: &chainrule_kernel::Port, name: &str| {
            let buffer = &unit.kernel.buffers[port.buffer];
            Port {
                name: name.to_owned(),
                point: take(&format!("{name}_point")),
                element: (!port.shape.is_empty()).then(|| take(&format!("{name}_element"))),
                ty: type_name(buffer.class, precision),
                class: buffer.class,
                len: buffer.len.clone(),
            }
        };
        let kernel = unit.kernel;
        let is_size = |i| kernel.sizes.iter().any(|size| size.source == SizeSource::Value { input: i });
        let inputs = kernel.inputs.iter().zip(&unit.inputs).enumerate();
        let inputs = inputs.map(|(i, (p, name))| (!is_size(i)).then(|| port(p, name))).collect();
        let outputs = kernel.outputs.iter().zip(&unit.outputs).map(|(p, name)| port(p, name)).collect();
        let [n_points, n_threads, failed, work, iwork] =
            ["n_points", "n_threads", "failed_point", "work", "iwork"].map(&mut take);
        Self { unit, options, precision, inputs, outputs, block, name, n_points, n_threads, failed, work, iwork }
    }

    /// Returns the fields of the struct of arguments.
    fn fields(&self) -> Vec<(String, &Port)> {
        let inputs = self.inputs.iter().enumerate().filter_map(|(i, p)| Some((format!("in{i}"), p.as_ref()?)));
        inputs.chain(self.outputs.iter().enumerate().map(|(i, p)| (format!("out{i}"), p))).collect()
    }

    fn params(&self) -> Vec<String> {
        let mut params = vec![format!("int64_t {}", self.n_points)];
        params.extend(size_names(self.unit).iter().map(|name| format!("int64_t {name}")));
        let inputs = self.inputs.iter().flatten().map(|p| ("const ", p));
        for (qualifier, port) in inputs.chain(self.outputs.iter().map(|p| ("", p))) {
            params.push(format!("{qualifier}{} *{}", port.ty, port.name));
            params.push(format!("int64_t {}", port.point));
            params.extend(port.element.iter().map(|name| format!("int64_t {name}")));
        }
        params.push(format!("{} *{}", self.precision.c_type(), self.work));
        params.push(format!("int64_t *{}", self.iwork));
        if self.options.threads {
            params.push(format!("int {}", self.n_threads));
        }
        params.push(format!("int64_t *{}", self.failed));
        params
    }

    fn size_params(&self) -> Vec<String> {
        size_names(self.unit).iter().map(|name| format!("int64_t {name}")).collect()
    }

    fn code(&self, code: &Code) -> String {
        code_name(self.unit, code)
    }

    /// Returns the struct of arguments, and the functions that compute lengths and workspace sizes.
    fn lengths(&self) -> String {
        let mut text = format!("struct cr_{} {{\n", self.name);
        for (field, port) in self.fields() {
            let qualifier = if field.starts_with("in") { "const " } else { "" };
            let _ = writeln!(
                text,
                "    {qualifier}{} *{field};\n    int64_t {field}_point, {field}_element, {field}_len;",
                port.ty
            );
        }
        for name in size_names(self.unit) {
            let _ = writeln!(text, "    int64_t size_{name};");
        }
        let _ = writeln!(text, "    int64_t n_work, n_iwork;\n}};\n");

        // Lengths, and the numbers and integers of workspace for one thread.
        let _ = write!(
            text,
            "static int cr_{0}_lengths(struct cr_{0} *cr_a)\n{{\n    int64_t cr_packed = 0, cr_ints = 0, cr_work = 0, cr_iwork = 0, cr_n = 0;\n",
            self.name
        );
        for name in size_names(self.unit) {
            let _ = writeln!(text, "    const int64_t {name} = cr_a->size_{name};");
            if is_extent(self.unit, &name) {
                let _ = writeln!(text, "    if ({name} < 0 || {name} > {MAX_EXTENT}) return 1;");
            } else {
                let _ = writeln!(text, "    (void){name};");
            }
        }
        for (field, port) in self.fields() {
            self.length(&mut text, &port.len, "cr_n");
            let sum = if port.class == Class::Real { "cr_packed" } else { "cr_ints" };
            let _ = writeln!(text, "    cr_a->{field}_len = cr_n;\n    if (cr_add({sum}, cr_n, &{sum})) return 1;");
        }
        let own = [self.unit.workspace(Class::Real), self.unit.workspace(Class::Int)];
        for (class, (total, own)) in ["cr_work", "cr_iwork"].into_iter().zip(&own).enumerate() {
            self.length(&mut text, own, total);
            if let Some((_, block)) = &self.block {
                self.length(&mut text, &block[class], "cr_n");
                // A vector of numbers for each number, but one integer for each integer.
                if class == 0 {
                    text.push_str("    if (cr_mul(cr_n, CR_LANES, &cr_n)) return 1;\n");
                }
                let _ = writeln!(text, "    if (cr_n > {total}) {total} = cr_n;");
            }
        }
        let lanes = if self.block.is_some() { "CR_LANES" } else { "1" };
        let _ = write!(
            text,
            "    if (cr_mul(cr_packed, {lanes}, &cr_packed) || cr_add(cr_packed, cr_work, &cr_work) || cr_work > INT64_MAX / 16) return 1;\n    \
             if (cr_mul(cr_ints, {lanes}, &cr_ints) || cr_add(cr_ints, cr_iwork, &cr_iwork) || cr_iwork > INT64_MAX / 16) return 1;\n    \
             cr_a->n_work = cr_work;\n    cr_a->n_iwork = cr_iwork;\n    return 0;\n}}\n\n"
        );
        for (function, field) in [("work_size", "n_work"), ("iwork_size", "n_iwork")] {
            let params = self.size_params();
            let _ = write!(
                text,
                "size_t {0}_{function}({1})\n{{\n    struct cr_{0} cr_a;\n",
                self.name,
                parameter_list(&params)
            );
            for name in size_names(self.unit) {
                let _ = writeln!(text, "    cr_a.size_{name} = {name};");
            }
            let _ =
                write!(text, "    return cr_{}_lengths(&cr_a) ? SIZE_MAX : (size_t)cr_a.{field};\n}}\n\n", self.name);
        }
        text
    }

    /// Assigns `len` to `target`, 0 if it is negative.
    fn length(&self, text: &mut String, len: &Poly<Reg>, target: &str) {
        if let Some(value) = len.as_constant() {
            let _ = writeln!(text, "    {target} = {};", value.max(0));
            return;
        }
        let _ = writeln!(text, "    {{\n        int64_t cr_total = 0, cr_term;");
        for (monomial, c) in len.terms() {
            let _ = writeln!(text, "        cr_term = {};", crate::literal::int(c));
            for r in monomial {
                let name = self.unit.formula(&Poly::var(*r));
                let _ = writeln!(text, "        if (cr_mul(cr_term, {name}, &cr_term)) return 1;");
            }
            text.push_str("        if (cr_add(cr_total, cr_term, &cr_total)) return 1;\n");
        }
        let _ = writeln!(text, "        {target} = cr_len(cr_total);\n    }}");
    }

    /// Packs or unpacks a field's elements, of `lanes` points from point `cr_p` on.
    fn transfer(&self, text: &mut String, field: &str, port: &Port, transfer: Transfer, lanes: &str) {
        let suffix = if port.class == Class::Int { "_ints" } else { "" };
        let function = if transfer == Transfer::Gather { "cr_gather" } else { "cr_scatter" };
        let far = format!("cr_a->{field} + cr_p * cr_a->{field}_point");
        let _ = writeln!(
            text,
            "    {function}{suffix}(cr_{field}, {far}, cr_a->{field}_point, cr_a->{field}_element, cr_a->{field}_len, {lanes});"
        );
    }

    /// Declares the pointer to a field's packed elements, behind those of the previous fields.
    fn place(text: &mut String, field: &str, port: &Port, lanes: &str) {
        let work = if port.class == Class::Real { "cr_work" } else { "cr_iwork" };
        let step = if lanes == "1" { String::new() } else { format!(" * {lanes}") };
        let _ = writeln!(text, "    {} *const cr_{field} = {work};\n    {work} += cr_a->{field}_len{step};", port.ty);
    }

    fn head(&self, function: &str) -> String {
        let real = self.precision.c_type();
        format!(
            "static int cr_{0}_{function}(const struct cr_{0} *cr_a, int64_t cr_p, {real} *cr_work, int64_t *cr_iwork)\n{{\n",
            self.name
        )
    }

    /// Returns the function that runs point `cr_p`.
    fn one_point(&self) -> String {
        let mut text = self.head("point");
        let mut arguments = Vec::new();
        for (field, port) in self.fields() {
            if port.element.is_some() {
                Self::place(&mut text, &field, port, "1");
            }
        }
        for param in self.unit.params() {
            arguments.push(match param {
                Param::Size(i) => format!("cr_a->size_{}", self.unit.sizes[i]),
                Param::Input(i) => match &self.inputs[i] {
                    None => format!("cr_a->size_{}", self.unit.inputs[i]),
                    Some(port) if port.element.is_some() => format!("cr_in{i}"),
                    Some(_) => format!("cr_a->in{i}[cr_p * cr_a->in{i}_point]"),
                },
                Param::Output(i) if self.outputs[i].element.is_some() => format!("cr_out{i}"),
                Param::Output(i) => format!("cr_a->out{i} + cr_p * cr_a->out{i}_point"),
                Param::Work => "cr_work".to_owned(),
                Param::IntWork => "cr_iwork".to_owned(),
            });
        }
        text.push_str("    int cr_code;\n    (void)cr_p;\n    (void)cr_work;\n    (void)cr_iwork;\n");
        for (field, port) in
            self.fields().into_iter().filter(|(field, p)| field.starts_with("in") && p.element.is_some())
        {
            self.transfer(&mut text, &field, port, Transfer::Gather, "1");
        }
        let _ = writeln!(
            text,
            "    cr_code = {}({});\n    if (cr_code != 0) return cr_code;",
            self.unit.name,
            arguments.join(", ")
        );
        for (field, port) in
            self.fields().into_iter().filter(|(field, p)| field.starts_with("out") && p.element.is_some())
        {
            self.transfer(&mut text, &field, port, Transfer::Scatter, "1");
        }
        text.push_str("    return 0;\n}\n\n");
        text
    }

    /// Returns the function that runs a full block of points from `cr_p` on.
    fn one_block(&self) -> String {
        let Some((block, workspaces)) = &self.block else { return String::new() };
        let mut text = format!("#ifdef __GNUC__\n{}", self.head("lanes"));
        for (field, port) in self.fields() {
            Self::place(&mut text, &field, port, "CR_LANES");
        }
        text.push_str("    int cr_code;\n    (void)cr_p;\n    (void)cr_work;\n    (void)cr_iwork;\n");
        let mut arguments = Vec::new();
        let cast = |port: &Port, qualifier: &str, field: String| match port.class {
            Class::Real => format!("({qualifier}cr_v *){field}"),
            Class::Int => field,
        };
        for i in 0..self.unit.kernel.sizes.len() {
            if let SizeSource::Extent { .. } = self.unit.kernel.sizes[i].source {
                arguments.push(format!("cr_a->size_{}", self.unit.sizes[i]));
            }
        }
        for (i, port) in self.inputs.iter().enumerate() {
            arguments.push(match port {
                None => format!("cr_a->size_{}", self.unit.inputs[i]),
                Some(port) => cast(port, "const ", format!("cr_in{i}")),
            });
        }
        arguments.extend(self.outputs.iter().enumerate().map(|(i, port)| cast(port, "", format!("cr_out{i}"))));
        if !workspaces[0].is_zero() {
            arguments.push("(cr_v *)cr_work".to_owned());
        }
        if !workspaces[1].is_zero() {
            arguments.push("cr_iwork".to_owned());
        }
        for (field, port) in self.fields().into_iter().filter(|(field, _)| field.starts_with("in")) {
            self.transfer(&mut text, &field, port, Transfer::Gather, "CR_LANES");
        }
        let _ =
            writeln!(text, "    cr_code = {block}({});\n    if (cr_code != 0) return cr_code;", arguments.join(", "));
        for (field, port) in self.fields().into_iter().filter(|(field, _)| field.starts_with("out")) {
            self.transfer(&mut text, &field, port, Transfer::Scatter, "CR_LANES");
        }
        text.push_str("    return 0;\n}\n#endif\n\n");
        text
    }

    /// Returns the public function.
    fn whole(&self) -> String {
        let n = &self.n_points;
        let mut text = format!("int {}({})\n{{\n    struct cr_{0} cr_a;\n", self.name, self.params().join(", "));
        let threads = if self.options.threads { self.n_threads.as_str() } else { "1" };
        text.push_str("    int64_t cr_blocks = 0, cr_first = INT64_MAX;\n    int cr_code = 0;\n");
        for (field, port) in self.fields() {
            let element = port.element.as_deref().unwrap_or("1");
            let _ = writeln!(
                text,
                "    cr_a.{field} = {};\n    cr_a.{field}_point = {};\n    cr_a.{field}_element = {element};",
                port.name, port.point
            );
        }
        for name in size_names(self.unit) {
            let _ = writeln!(text, "    cr_a.size_{name} = {name};");
        }
        let size = self.code(&self.unit.codes[0]);
        let _ = writeln!(
            text,
            "    if (cr_{}_lengths(&cr_a) || {n} < 0{}) {{",
            self.name,
            if self.options.threads { format!(" || {threads} < 1") } else { String::new() }
        );
        let _ = writeln!(text, "        if ({0} != 0) *{0} = 0;\n        return {size};\n    }}", self.failed);
        let (work, iwork) = (&self.work, &self.iwork);
        if self.block.is_some() {
            let _ = writeln!(text, "#ifdef __GNUC__\n    cr_blocks = {n} / CR_LANES;");
            text.push_str(&self.loop_over("cr_blocks", "cr_b * CR_LANES", "lanes"));
            let _ = writeln!(text, "    cr_blocks *= CR_LANES;\n#endif");
            let _ = writeln!(
                text,
                "    if (cr_code == 0) {{\n        for (int64_t cr_p = cr_blocks; cr_p < {n}; cr_p++) {{"
            );
            let _ = writeln!(
                text,
                "            cr_code = cr_{}_point(&cr_a, cr_p, {work}, {iwork});\n            if (cr_code != 0) {{\n                cr_first = cr_p;\n                break;\n            }}\n        }}\n    }}",
                self.name
            );
        } else {
            let _ = writeln!(text, "    cr_blocks = {n};");
            text.push_str(&self.loop_over("cr_blocks", "cr_b", "point"));
        }
        let _ = write!(
            text,
            "    if (cr_code != 0 && {0} != 0) *{0} = cr_first;\n    return cr_code;\n}}\n\n",
            self.failed
        );
        text
    }

    /// Returns the loop over `n` blocks or points from point `point` on.
    fn loop_over(&self, n: &str, point: &str, function: &str) -> String {
        let (work, iwork) = (&self.work, &self.iwork);
        let mut text = String::new();
        if !self.options.threads {
            let _ = write!(
                text,
                "    for (int64_t cr_b = 0; cr_b < {n}; cr_b++) {{\n        cr_code = cr_{}_{function}(&cr_a, {point}, {work}, {iwork});\n        \
                 if (cr_code != 0) {{\n            cr_first = {point};\n            break;\n        }}\n    }}\n",
                self.name
            );
            return text;
        }
        let _ = write!(
            text,
            "#ifdef _OPENMP\n#pragma omp parallel for schedule(static) num_threads({0})\n#endif\n    \
             for (int64_t cr_b = 0; cr_b < {n}; cr_b++) {{\n#ifdef _OPENMP\n        const int64_t cr_t = omp_get_thread_num();\n#else\n        \
             const int64_t cr_t = 0;\n#endif\n        \
             const int cr_c = cr_{1}_{function}(&cr_a, {point}, {work} + cr_t * cr_a.n_work, {iwork} + cr_t * cr_a.n_iwork);\n        \
             if (cr_c != 0) {{\n#ifdef _OPENMP\n#pragma omp critical\n#endif\n            {{\n                \
             if ({point} < cr_first) {{\n                    cr_first = {point};\n                    cr_code = cr_c;\n                }}\n            }}\n        }}\n    }}\n",
            self.n_threads, self.name
        );
        text
    }

    /// Returns the part of the header.
    fn declaration(&self) -> String {
        let mut text = format!("/*\n * {}: {} for {} points.\n *\n", self.name, self.unit.name, self.n_points);
        let _ = writeln!(
            text,
            " * Element k of point p of an argument or a result x is x[p*x_point + k*x_element]: in an array of"
        );
        let _ = writeln!(
            text,
            " * structures x_point is the length and x_element 1, in a structure of arrays x_point is 1 and x_element"
        );
        let _ = writeln!(
            text,
            " * the number of points; what all points share has x_point 0. Results must not overlap one another, nor"
        );
        text.push_str(" * the arguments, nor must two points of a result.");
        text.push_str(if self.block.is_some() {
            " With GNU C, blocks of"
        } else {
            " Control differs from point to point,\n * so that points run one by one."
        });
        if self.block.is_some() {
            let _ = write!(
                text,
                "\n * {} points run together; results are those of {} bit for bit.",
                self.options.lanes, self.unit.name
            );
        }
        let times =
            if self.options.threads { format!(" for each of {} threads", self.n_threads) } else { String::new() };
        let _ = write!(text, "\n *\n * Workspace, of any content{times}:\n");
        let args = size_names(self.unit).join(", ");
        let real = self.precision.c_type();
        let _ = writeln!(text, " *   {}: {}_work_size({args}) {real}s", self.work, self.name);
        let _ = writeln!(text, " *   {}: {}_iwork_size({args}) integers", self.iwork, self.name);
        let _ = writeln!(
            text,
            " *\n * Returns what {} does; where that is not 0, the first point that it is not 0 for, or that block's first, is\n * stored to {}, which may be null.{}\n */",
            self.unit.name,
            self.failed,
            if self.options.threads { " Threads are those of OpenMP; without it there is one." } else { "" }
        );
        let _ = write!(text, "int {}({});\n\n", self.name, self.params().join(", "));
        let params = parameter_list(&self.size_params());
        for function in ["work_size", "iwork_size"] {
            let _ = writeln!(text, "size_t {}_{function}({params});", self.name);
        }
        text.push('\n');
        text
    }
}
