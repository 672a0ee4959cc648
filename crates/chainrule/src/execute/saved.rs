//! Serialisation of compiled functions: saved on one machine, loaded on another, with the same results.
//!
//! In: a [`Compiled`]. Out: bytes in the frame of [`chainrule_kernel::bytes`], which contain its kernel and its
//! signature; not its source, unless requested, and no machine code, which is generated again after loading. In again:
//! any bytes; they are rejected with a reason, or they are a function whose signature matches its kernel.
//!
//! | content | meaning |
//! | --- | --- |
//! | texts | name and text of each file to which locations refer; none unless requested |
//! | whether loops were kept | 0, or 1, the number of variables, size parameters, parameters, their requirements |
//! | arguments, results | names and types; sizes over the variables |
//! | kernel | as [`chainrule_kernel::bytes`] writes it |

use crate::function::ArrayBody;
use crate::interface::Signature;
use crate::straight::Unroll;
use crate::{CompileOptions, Compiled, Error, Result, UserFunction};
use chainrule_base::{Arena, FileId, Id, Name, Sources, Span};
use chainrule_graph::Semantics;
use chainrule_ir::{Block, Function, Requirement, Size, Type, Var, VarId};
use chainrule_kernel::bytes::{Content, Damage, Reader, Writer, damage, is_sealed, open, read, seal, write};
use chainrule_kernel::{Kernel, Port};
use chainrule_scalarise::leaves::class_of;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum nesting depth of types.
const MAX_DEPTH: usize = 500;

/// Returns whether `bytes` start like those of [`Compiled::to_bytes`].
#[must_use]
pub fn is_saved(bytes: &[u8]) -> bool {
    is_sealed(bytes)
}

impl Compiled {
    /// Returns the function as bytes, which [`Self::from_bytes`] converts back to a function with bitwise equal
    /// results. The conversion is deterministic; it takes three or four bytes per operation.
    ///
    /// The source is not included: if the function fails after loading, the message names file, line and column.
    /// [`Self::to_bytes_with_sources`] includes the source as well.
    ///
    /// ```
    /// use chainrule::{Compiled, Function, vars};
    /// let x = vars("x", 3);
    /// let f = Function::new("f", &x, &x.norm())?.gradient().compile()?;
    /// let bytes = f.to_bytes()?;
    /// let g = Compiled::from_bytes(&bytes)?;
    /// assert_eq!(g.eval(&[&[2.0, 3.0, 6.0]])?, f.eval(&[&[2.0, 3.0, 6.0]])?);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails for two users' functions with one name; loops and branches nested thousands deep (a limitation).
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut places = BTreeMap::new();
        let sources = self.parts().2.map(|body| &*body.sources);
        save(self, &[], &mut |message, span| match (span, sources) {
            (Some(span), Some(sources)) => {
                let place: &mut String = places.entry(span).or_insert_with(|| {
                    let (line, column) = sources.line_column(span);
                    format!("{}:{line}:{column}", sources.file(span.file).name)
                });
                (format!("{message} (at {place})"), None)
            }
            _ => (message.to_owned(), None),
        })
    }

    /// Does the same with the files to which messages may refer, by name and text: if the function fails after loading,
    /// the message shows the line.
    ///
    /// # Errors
    /// The errors of [`to_bytes`](Self::to_bytes).
    pub fn to_bytes_with_sources(&self) -> Result<Vec<u8>> {
        let (kernel, _, body) = self.parts();
        let Some(body) = body else { return self.to_bytes() };
        let spans = spans(kernel);
        let mut files: Vec<FileId> = spans.map(|span| span.file).collect();
        files.sort_unstable();
        files.dedup();
        let texts: Vec<(&str, &str)> = files
            .iter()
            .map(|file| body.sources.file(*file))
            .map(|file| (file.name.as_str(), file.text.as_str()))
            .collect();
        let moved = |span: Span| files.binary_search(&span.file).ok().map(|i| Span { file: FileId::new(i), ..span });
        save(self, &texts, &mut |message, span| (message.to_owned(), span.and_then(moved)))
    }

    /// Loads a function that [`to_bytes`](Self::to_bytes) saved, for this machine.
    ///
    /// # Errors
    /// Fails for bytes that are not a Chainrule file; one of a newer version, truncated or damaged; one that needs
    /// users' functions.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::from_bytes_with(bytes, &[], &CompileOptions::default())
    }

    /// Does the same with options ([`CompileOptions::fuse`] has no effect here: that was decided before saving), and
    /// for a function that calls users' functions. Their code cannot be saved, so they are passed here again, and found
    /// by their names; their derivatives ([`UserFunction::with_partial_functions`]) are included.
    ///
    /// ```
    /// use chainrule::{CompileOptions, Compiled, Function, UserFunction, var};
    /// let table = UserFunction::new("table", 1, |x| x[0].floor());
    /// let x = var("x");
    /// let bytes = Function::new("f", &x, &(table.call(&[&x]) * 2.0))?.compile()?.to_bytes()?;
    /// let f = Compiled::from_bytes_with(&bytes, &[&table], &CompileOptions::default())?;
    /// assert_eq!(f.eval(&[&[3.7]])?, [[6.0]]);
    /// assert!(Compiled::from_bytes(&bytes).unwrap_err().to_string().contains("needs `table` of 1 argument"));
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`from_bytes`](Self::from_bytes); a user's function that is not among `functions`; a backend or
    /// instructions that this machine does not support.
    pub fn from_bytes_with(bytes: &[u8], functions: &[&UserFunction], options: &CompileOptions) -> Result<Self> {
        let twice = RefCell::new(None);
        let find = |name: &str, arity: usize| {
            let mut found = functions.iter().flat_map(|function| function.find(name, arity));
            let first = found.next()?;
            if found.any(|other| !Arc::ptr_eq(&first, &other)) {
                *twice.borrow_mut() = Some(name.to_owned());
            }
            Some(first)
        };
        let payload = open(Content::Function, bytes).map_err(Error::lone)?;
        let mut reader = Reader::new(payload);
        let head = Head::read(&mut reader).map_err(|damage| Error::lone(*damage))?;
        let kernel = read(&mut reader, &find).map_err(Error::lone)?;
        if let Some(name) = twice.take() {
            return Err(Error::request(
                format!("two functions called `{name}` are given"),
                "give the one that the saved function calls",
            ));
        }
        reader
            .end()
            .and_then(|()| head.check(&kernel, 4096 + 16 * payload.len()))
            .map_err(|damage| Error::lone(*damage))?;
        let body = head.program.map(|program| {
            let function = program.function(&kernel.name, &head.signature);
            // The kernel is complete: its semantics is not needed any more.
            let (sources, semantics) = (Arc::new(head.sources), Semantics::default());
            let (made_again, unroll, decided) = (Vec::new(), Unroll::Never, Arc::default());
            let has_given_sizes = false;
            Arc::new(ArrayBody { function, sources, semantics, made_again, unroll, has_given_sizes, decided })
        });
        Self::from_parts(kernel, head.signature, body, options)
    }
}

fn save(compiled: &Compiled, texts: &[(&str, &str)], say: &mut chainrule_kernel::bytes::Say<'_>) -> Result<Vec<u8>> {
    let (kernel, signature, body) = compiled.parts();
    let mut out = Writer::new();
    out.count(texts.len());
    for (name, text) in texts {
        out.text(name);
        out.text(text);
    }
    // Variables are renumbered, in the same order: those of the body are dropped.
    let types = || signature.params.iter().chain(&signature.results).map(|(_, ty)| ty);
    let mut vars: Vec<VarId> = types().flat_map(Type::sizes).flat_map(|size| size.vars()).collect();
    if let Some(body) = body {
        vars.extend(body.function.sizes.iter().chain(&body.function.params));
        vars.extend(body.function.requires.iter().flat_map(|requirement| requirement.size.vars()));
    }
    vars.sort_unstable();
    vars.dedup();
    let mut head = HeadWriter { out: &mut out, vars: &vars };
    head.out.byte(u8::from(body.is_some()));
    if let Some(body) = body {
        let f = &body.function;
        head.out.count(vars.len());
        for list in [&f.sizes, &f.params] {
            head.out.count(list.len());
            list.iter().for_each(|var| head.var(*var));
        }
        head.out.count(f.requires.len());
        for requirement in &f.requires {
            head.size(&requirement.size);
            head.out.byte(u8::from(requirement.exactly_zero));
        }
    }
    for ports in [&signature.params, &signature.results] {
        head.out.count(ports.len());
        for (name, ty) in ports {
            head.out.text(name);
            head.ty(ty);
        }
    }
    write(kernel, &mut out, say).map_err(Error::lone)?;
    Ok(seal(Content::Function, &out.into_bytes()))
}

struct HeadWriter<'a> {
    out: &'a mut Writer,
    /// Ascending; a variable is written as its position.
    vars: &'a [VarId],
}

impl HeadWriter<'_> {
    fn var(&mut self, var: VarId) {
        self.out.count(self.vars.partition_point(|other| *other < var));
    }

    fn size(&mut self, size: &Size) {
        self.out.count(size.terms().len());
        for (monomial, coefficient) in size.terms() {
            self.out.count(monomial.len());
            monomial.iter().for_each(|var| self.var(*var));
            self.out.integer(coefficient);
        }
    }

    // Recursive on the nesting of types only, here and below.
    fn ty(&mut self, ty: &Type) {
        match ty {
            Type::Double => self.out.byte(0),
            Type::Int => self.out.byte(1),
            Type::Bool => self.out.byte(2),
            Type::Array(size, element) => {
                self.out.byte(3);
                self.size(size);
                self.ty(element);
            }
            Type::Tuple(fields, names) => {
                self.out.byte(if names.is_some() { 5 } else { 4 });
                self.out.count(fields.len());
                for (i, field) in fields.iter().enumerate() {
                    if let Some(names) = names {
                        self.out.text(&names[i]);
                    }
                    self.ty(field);
                }
            }
        }
    }
}

/// Content before the kernel.
struct Head {
    sources: Sources,
    program: Option<ArrayProgram>,
    signature: Signature,
}

/// Definitions of sizes: an array program without its body.
struct ArrayProgram {
    n_vars: usize,
    sizes: Vec<VarId>,
    params: Vec<VarId>,
    requires: Vec<Requirement>,
}

impl Head {
    fn read(from: &mut Reader<'_>) -> std::result::Result<Self, Damage> {
        let mut sources = Sources::new();
        for _ in 0..from.count(2)? {
            let name = from.text()?;
            sources.add(name, from.text()?);
        }
        let keeps_loops = from.truth()?;
        let n_vars = if keeps_loops { from.count(1)? } else { 0 };
        let mut head = HeadReader { from, n_vars };
        let program = if keeps_loops {
            let (sizes, params) = (head.vars()?, head.vars()?);
            let n = head.from.count(2)?;
            let mut requires = Vec::new();
            for _ in 0..n {
                let (size, exactly_zero) = (head.size()?, head.from.truth()?);
                requires.push(Requirement { size, exactly_zero, message: String::new(), span: None });
            }
            Some(ArrayProgram { n_vars, sizes, params, requires })
        } else {
            None
        };
        let signature = Signature { params: head.ports()?, results: head.ports()? };
        if program.as_ref().is_some_and(|program| program.params.len() != signature.params.len()) {
            return Err(misfit());
        }
        Ok(Self { sources, program, signature })
    }

    /// Checks that the kernel has the arguments and results of the signature, and that locations lie in the texts.
    /// `budget` grows with the bytes.
    fn check(&self, kernel: &Kernel, budget: usize) -> std::result::Result<(), Damage> {
        for (ports, of) in [(&self.signature.params, &kernel.inputs), (&self.signature.results, &kernel.outputs)] {
            let mut fit = Fit { kernel, ports: of, next: 0, budget };
            for (name, ty) in ports {
                fit.ty(ty, &mut name.to_string(), &mut Vec::new())?;
            }
            if fit.next != of.len() {
                return Err(misfit());
            }
        }
        let spans = spans(kernel);
        for span in spans {
            let text = self.sources.iter().nth(span.file.index()).map(|(_, file)| &file.text);
            if text.is_none_or(|text| text.get(span.range()).is_none()) {
                return Err(damage("a place in it is beyond its texts"));
            }
        }
        Ok(())
    }
}

impl ArrayProgram {
    /// Returns a function of these parameters with an empty body.
    fn function(self, name: &Name, signature: &Signature) -> Function {
        let int = Var { ty: Type::Int, name: None, span: None, value: None };
        let mut vars: Arena<VarId, Var> = Arena::filled(self.n_vars, int);
        for (param, (name, ty)) in self.params.iter().zip(&signature.params) {
            vars[*param] = Var { ty: ty.clone(), name: Some(name.clone()), span: None, value: None };
        }
        let body = Block { stmts: Vec::new(), result: VarId::new(0) };
        Function { name: name.clone(), vars, sizes: self.sizes, params: self.params, requires: self.requires, body }
    }
}

/// Iterates over the source spans of messages.
fn spans(kernel: &Kernel) -> impl Iterator<Item = Span> + '_ {
    let messages = kernel.failures.iter().chain(kernel.regs.messages());
    messages.map(|(_, span)| *span).chain(kernel.requires.iter().map(|condition| condition.span)).flatten()
}

fn misfit() -> Damage {
    damage("its signature does not fit its kernel")
}

/// Parallel walk over types and the ports of a kernel, one per leaf.
struct Fit<'k> {
    kernel: &'k Kernel,
    ports: &'k [Port],
    next: usize,
    /// Limit for the copies of extents, one per leaf.
    budget: usize,
}

impl Fit<'_> {
    /// Visits a type; `path` is the name so far, `extents` the sizes of the enclosing arrays.
    fn ty(
        &mut self,
        ty: &Type,
        path: &mut String,
        extents: &mut Vec<(Option<i64>, usize)>,
    ) -> std::result::Result<(), Damage> {
        match ty {
            Type::Double | Type::Int | Type::Bool => {
                let port = self.ports.get(self.next).ok_or_else(misfit)?;
                self.next += 1;
                let is_so = self.kernel.buffers.get(port.buffer).is_some_and(|buffer| buffer.class == class_of(ty))
                    && *port.name == **path
                    && port.shape.len() == extents.len()
                    && port.shape.iter().zip(&*extents).all(|(extent, (known, _))| extent.as_constant() == *known);
                // Evaluation multiplies constants.
                let known = extents.iter().filter_map(|extent| extent.0).try_fold(1, i64::checked_mul);
                let cost = extents.iter().map(|extent| extent.1).fold(0, usize::saturating_add);
                self.budget = self.budget.checked_sub(cost).ok_or_else(misfit)?;
                if is_so && known.is_some() { Ok(()) } else { Err(misfit()) }
            }
            Type::Array(size, element) => {
                let first = self.next;
                let depth = extents.len();
                let weight = size.terms().map(|(monomial, _)| 1 + monomial.len()).sum();
                extents.push((size.as_constant(), weight));
                self.ty(element, path, extents)?;
                extents.pop();
                // All parts of an array's elements have the array's extent.
                let extent = |port: &Port| port.shape.get(depth).cloned();
                let beside = &self.ports[first..self.next];
                if beside.is_empty() || beside.windows(2).any(|pair| extent(&pair[0]) != extent(&pair[1])) {
                    return Err(misfit());
                }
                Ok(())
            }
            Type::Tuple(fields, names) => {
                let len = path.len();
                for (i, field) in fields.iter().enumerate() {
                    path.push('.');
                    match names {
                        Some(names) => path.push_str(&names[i]),
                        None => path.push_str(&i.to_string()),
                    }
                    self.ty(field, path, extents)?;
                    path.truncate(len);
                }
                Ok(())
            }
        }
    }
}

struct HeadReader<'r, 'a> {
    from: &'r mut Reader<'a>,
    n_vars: usize,
}

impl HeadReader<'_, '_> {
    fn var(&mut self) -> std::result::Result<VarId, Damage> {
        let idx = self.from.index()?;
        if idx < self.n_vars { Ok(VarId::new(idx)) } else { Err(damage("a variable in it does not exist")) }
    }

    fn vars(&mut self) -> std::result::Result<Vec<VarId>, Damage> {
        (0..self.from.count(1)?).map(|_| self.var()).collect()
    }

    fn size(&mut self) -> std::result::Result<Size, Damage> {
        let mut terms = Vec::new();
        for _ in 0..self.from.count(2)? {
            let monomial = self.vars()?;
            terms.push((monomial, self.from.integer()?));
        }
        Size::from_terms(terms).ok_or_else(|| damage("a size in it is not in its form"))
    }

    fn ports(&mut self) -> std::result::Result<Vec<(Name, Type)>, Damage> {
        (0..self.from.count(2)?).map(|_| Ok((self.from.name()?, self.ty(0)?))).collect()
    }

    fn ty(&mut self, depth: usize) -> std::result::Result<Type, Damage> {
        if depth == MAX_DEPTH {
            return Err(damage("a type in it nests too deep"));
        }
        let kind = self.from.byte()?;
        Ok(match kind {
            0 => Type::Double,
            1 => Type::Int,
            2 => Type::Bool,
            3 => {
                let size = self.size()?;
                Type::array(size, self.ty(depth + 1)?)
            }
            4 | 5 => {
                let (mut fields, mut names) = (Vec::new(), Vec::new());
                for _ in 0..self.from.count(1)? {
                    if kind == 5 {
                        names.push(self.from.name()?);
                    }
                    fields.push(self.ty(depth + 1)?);
                }
                Type::Tuple(fields, (kind == 5).then(|| names.into()))
            }
            _ => return Err(damage("a type in it is none")),
        })
    }
}
