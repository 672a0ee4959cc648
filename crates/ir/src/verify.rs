//! Verifier of the invariants of [`crate::function`] and [`crate::types`].
//!
//! Runs after every pass in tests. Its findings are bugs of the previous stage, never a user's error.

use crate::specialise::with_sizes;
use crate::{Block, Expr, Function, Size, StateLoop, Stmt, Type, Var, VarId, WhileLoop, check_type, describe};
use chainrule_base::{Diagnostic, Id, Span};

/// Checks every invariant. Linear in the function, up to the size of its types.
///
/// # Errors
/// All violations, as bugs.
pub fn verify(function: &Function) -> Result<(), Vec<Diagnostic>> {
    let equal = function.equal_sizes();
    if !equal.is_empty() {
        // Types agree where one size, or a number, stands for all that are required to equal it.
        let mut function = with_sizes(function, &|size: &Size| equal.canonical(size));
        // Those that are replaced remain integers, and may be operands.
        let (kept, replaced) =
            function.sizes.iter().partition(|size| equal.canonical(&Size::var(**size)).as_var() == Some(**size));
        function.sizes = kept;
        function.params.extend::<Vec<VarId>>(replaced);
        return verify(&function);
    }
    let n = function.vars.len();
    let mut verifier =
        Verifier { function, bound: vec![false; n], in_scope: vec![false; n], span: None, found: Vec::new() };
    verifier.function();
    if verifier.found.is_empty() { Ok(()) } else { Err(verifier.found) }
}

struct Verifier<'a> {
    function: &'a Function,
    // Whether each variable is bound, and whether it is in scope.
    bound: Vec<bool>,
    in_scope: Vec<bool>,
    span: Option<Span>,
    found: Vec<Diagnostic>,
}

impl<'a> Verifier<'a> {
    fn report(&mut self, what: impl Into<String>) {
        let mut diagnostic = Diagnostic::bug(format!("the IR of `{}` is broken", self.function.name)).with_reason(what);
        if let Some(span) = self.span {
            diagnostic = diagnostic.with_label(span, "made from this");
        }
        self.found.push(diagnostic);
    }

    fn function(&mut self) {
        let function = self.function;
        for size in &function.sizes {
            self.bind(*size);
            self.binder(*size, Some(&Type::Int));
        }
        for param in &function.params {
            self.bind(*param);
        }
        // Sizes may be Int parameters further right, but nothing else.
        let at_entry = self.in_scope.clone();
        let mut dimensions = Vec::new();
        for param in &function.params {
            self.binder(*param, None);
            if let Some(var) = function.vars.get(*param) {
                dimensions.extend(var.ty.sizes());
            }
        }
        for size in &function.sizes {
            if !dimensions.iter().any(|d| d.as_var() == Some(*size)) {
                self.report(format!("the size parameter {size} is no dimension of a parameter"));
            }
        }
        for requirement in &function.requires {
            self.span = requirement.span;
            self.size(&requirement.size, "a requirement");
        }
        self.span = None;
        self.stmts(&function.body);
        self.result(&function.body);
        self.in_scope = at_entry;
        if let Some(result) = function.vars.get(function.body.result) {
            self.type_in_scope(function.body.result, &result.ty);
        }
    }

    fn var(&mut self, var: VarId) -> Option<&'a Var> {
        let found = self.function.vars.get(var);
        if found.is_none() {
            self.report(format!("{var} does not exist"));
        }
        found
    }

    fn bind(&mut self, var: VarId) {
        if self.var(var).is_none() {
            return;
        }
        if std::mem::replace(&mut self.bound[var.index()], true) {
            self.report(format!("{var} is bound twice"));
        }
        self.in_scope[var.index()] = true;
    }

    fn leave(&mut self, var: VarId) {
        if let Some(in_scope) = self.in_scope.get_mut(var.index()) {
            *in_scope = false;
        }
    }

    // Checks a parameter, an index, a state.
    fn binder(&mut self, var: VarId, wanted: Option<&Type>) {
        let Some(data) = self.var(var) else { return };
        if wanted.is_some_and(|ty| *ty != data.ty) {
            self.report(format!("{var} is {} where Int is needed", describe(&data.ty)));
        }
        if data.value.is_some() {
            self.report(format!("{var} is bound by no computation, and has a value"));
        }
        self.type_in_scope(var, &data.ty);
    }

    fn type_in_scope(&mut self, var: VarId, ty: &Type) {
        for size in ty.sizes() {
            self.size(&size, &format!("the type of {var}"));
        }
        self.fields(var, ty);
    }

    // Recursive on the nesting of a type.
    fn fields(&mut self, var: VarId, ty: &Type) {
        match ty {
            Type::Double | Type::Int | Type::Bool => {}
            Type::Array(_, element) => self.fields(var, element),
            Type::Tuple(fields, names) => {
                if let Some(names) = names {
                    let distinct = names.iter().enumerate().all(|(i, name)| !names[..i].contains(name));
                    if names.len() != fields.len() || !distinct {
                        self.report(format!("the names of the fields of {var} do not fit its fields"));
                    }
                }
                fields.iter().for_each(|field| self.fields(var, field));
            }
        }
    }

    fn size(&mut self, size: &Size, of: &str) {
        for var in size.vars() {
            let Some(data) = self.var(var) else { continue };
            if data.ty != Type::Int {
                self.report(format!("{of} has {var} in a size, which is {}", describe(&data.ty)));
            }
            if data.value.is_some() {
                self.report(format!("{of} has {var} in a size, which is no base variable"));
            }
            if !self.in_scope[var.index()] {
                self.report(format!("{of} has {var} in a size, which is not in scope"));
            }
        }
    }

    fn operand(&mut self, var: VarId, of: &Stmt) {
        if self.var(var).is_some() && !self.in_scope[var.index()] {
            self.report(format!("{} uses {var}, which is not in scope", of.var));
        }
    }

    // Checks the statements and leaves their bindings in scope.
    fn stmts(&mut self, block: &Block) {
        for stmt in &block.stmts {
            self.stmt(stmt);
        }
    }

    fn result(&mut self, block: &Block) {
        if self.var(block.result).is_some() && !self.in_scope[block.result.index()] {
            self.report(format!("the result {} of a block is not in scope", block.result));
        }
    }

    // Checks a block whose `binders` are in scope; they and the block's bindings leave the scope.
    fn block(&mut self, block: &Block) {
        self.stmts(block);
        self.result(block);
        for stmt in &block.stmts {
            self.leave(stmt.var);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let outer = self.span;
        self.span = stmt.span.or(outer);
        for operand in stmt.expr.operands() {
            self.operand(operand, stmt);
        }
        match &stmt.expr {
            Expr::Size(size) => self.size(size, "an integer"),
            Expr::Build { size, .. } => self.size(size, "a build"),
            Expr::Fold(StateLoop { count: size, .. })
            | Expr::Sum { count: size, .. }
            | Expr::Loop(StateLoop { count: size, .. })
            | Expr::While(WhileLoop { limit: size, .. }) => self.size(size, "a loop"),
            Expr::Again { me, .. } => self.operand(*me, stmt),
            _ => {}
        }
        let binders = stmt.expr.binders();
        for binder in &binders {
            // In the outer scope: its type may not use variables bound with it.
            self.binder(*binder, None);
        }
        for binder in &binders {
            self.bind(*binder);
        }
        for block in stmt.expr.blocks() {
            self.block(block);
        }
        for binder in &binders {
            self.leave(*binder);
        }
        self.bound_type(stmt);
        self.bind(stmt.var);
        self.span = outer;
    }

    fn bound_type(&mut self, stmt: &Stmt) {
        let Some(var) = self.var(stmt.var) else { return };
        if let Err(what) = check_type(&stmt.expr, &var.ty, &self.function.vars) {
            self.report(format!("{}: {what}", stmt.var));
        }
        let value = if let Expr::Size(size) = &stmt.expr { Some(size) } else { None };
        if var.value.as_ref() != value {
            self.report(format!("the value of {} is not that of the integer that it is bound to", stmt.var));
        }
        self.type_in_scope(stmt.var, &var.ty);
    }
}
