//! Messages of the parser: one function for each message, with title, span, reason and remedy.

use crate::tree::{Expr, MAX_DEPTH};
use chainrule_base::{Diagnostic, Span};

/// Maximum length of quoted text in a title.
const MAX_QUOTED: usize = 40;

/// Returns `text` in backquotes, shortened if it is long; in words if it is the end.
pub(super) fn quoted(text: &str) -> String {
    if text.is_empty() {
        return "the end of the text".to_owned();
    }
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("`{}...`", &text[..end]),
        None => format!("`{text}`"),
    }
}

/// Whether other languages start a function with `word`.
pub(super) fn is_lambda_word(word: &str) -> bool {
    matches!(word, "lambda" | "λ" | "fn" | "func" | "function" | "def" | "proc")
}

fn error(title: impl Into<String>, span: Span, label: impl Into<String>) -> Diagnostic {
    Diagnostic::error(title).with_label(span, label)
}

// Missing parts.

pub(super) fn missing_expr(span: Span, found: &str, after: Option<&str>) -> Diagnostic {
    let place = after.map_or_else(String::new, |text| format!(" after {}", quoted(text)));
    error(
        format!("an expression is missing{place}"),
        span,
        format!("{} stands where an expression should", quoted(found)),
    )
    .with_help("write an expression here, such as a number, a name or `f x`")
}

pub(super) fn expr_at_end(span: Span, after: Option<(Span, &str)>) -> Diagnostic {
    match after {
        Some((after, text)) => error(format!("an expression is missing after {}", quoted(text)), after, "after this")
            .with_reason("the text, or the definition, ends here")
            .with_help("write the expression that belongs here"),
        None => error("there is no expression", span, "the text is empty").with_help("write an expression"),
    }
}

pub(super) fn offside_expr(span: Span, after: Option<(Span, &str)>, column: u32) -> Diagnostic {
    let title = after.map_or_else(
        || "an expression is missing".to_owned(),
        |(_, text)| format!("an expression is missing after {}", quoted(text)),
    );
    let diagnostic = error(title, span, format!("this line starts at column {column}"));
    let diagnostic = match after {
        Some((after, _)) => diagnostic.with_label(after, "an expression should follow here"),
        None => diagnostic,
    };
    diagnostic
        .with_reason("a line that starts at the column of its `let`, or left of it, does not belong to that `let`")
        .with_help("indent the line further than the `let`")
}

pub(super) fn missing_operand(span: Span, operator: &str, first: bool) -> Diagnostic {
    let diagnostic =
        error(format!("{} has nothing on its left", quoted(operator)), span, "an expression is missing before this");
    if operator == "=" {
        diagnostic.with_help("to compare, write `a == b`; names keep their value, so there is no `+=`")
    } else if first {
        diagnostic
            .with_reason("this line does not continue the one above: it is not indented further than the `let` there")
            .with_help("to continue the line above, indent this one further than its `let`")
    } else {
        diagnostic.with_help(format!(
            "write the left operand; the operator as a function is written {}",
            quoted(&format!("({operator})"))
        ))
    }
}

pub(super) fn missing_result(keyword: Span, after: Span) -> Diagnostic {
    error("this `let` has no result", keyword, "what is bound here is used nowhere")
        .with_label(after, "an expression should follow here")
        .with_reason("inside an expression, `let x = e` is followed by the expression in which `x` is used")
        .with_help("write `let x = e in result`, or the result on a new line at the column of the `let`")
}

pub(super) fn missing_in(keyword: Span, span: Span, found: &str) -> Diagnostic {
    error(format!("`in` is missing before {found}"), span, "the bound value ends before this")
        .with_label(keyword, "of this `let`")
        .with_reason("on one line, `in` separates a `let` from its result")
        .with_help("write `in`, or go on in a new line at the column of the `let`")
}

pub(super) fn missing_then(keyword: Span, span: Span, found: &str) -> Diagnostic {
    error("this `if` has no `then`", keyword, "the condition starts here")
        .with_label(span, format!("`then` should stand before {found}"))
        .with_help("write `if condition then a else b`")
}

pub(super) fn missing_else(keyword: Span, span: Span) -> Diagnostic {
    error("this `if` has no `else`", keyword, "which value has it when the condition is false?")
        .with_label(span, "`else` should stand before this")
        .with_reason("an `if` is an expression: it has a value in either case")
        .with_help("write `if condition then a else b`")
}

pub(super) fn missing_arrow(keyword: Span, span: Span, found: &str) -> Diagnostic {
    let label = format!("`->` should stand here, not {}", quoted(found));
    let diagnostic = error("this `fun` has no `->`", span, label).with_label(keyword, "this one");
    match found {
        "=" => diagnostic.with_reason("`=` follows a `let`'s name, `->` follows a `fun`'s parameters"),
        "=>" | "⇒" => diagnostic.with_reason("`=>` stands only in the types of functions"),
        _ => diagnostic,
    }
    .with_help("write `fun x y -> e`")
}

pub(super) fn missing_equals(keyword: Span, span: Span, found: &str) -> Diagnostic {
    let label = format!("`=` should stand here, not {}", quoted(found));
    let diagnostic = error("this `let` has no `=`", span, label).with_label(keyword, "this one");
    match found {
        "->" | "=>" | "→" | "⇒" => {
            diagnostic.with_help("write `let f x = e`, or `let f = fun x -> e`: the arrow belongs to `fun`")
        }
        ":=" | "<-" | "==" => diagnostic.with_help("write `let x = e`"),
        _ => diagnostic.with_help("write `let x = e`, or `let f x y = e` for a function"),
    }
}

pub(super) fn missing_fun(before: Span, arrow: Span) -> Diagnostic {
    error("a function starts with `fun`", arrow, "this arrow follows no `fun`")
        .with_label(before, "these are no parameters without `fun` before them")
        .with_help("write `fun x y -> e`, in parentheses where it is an argument")
}

pub(super) fn stray_arrow(span: Span, found: &str) -> Diagnostic {
    error(format!("{} belongs to no `fun`", quoted(found)), span, "here").with_help("write `fun x y -> e`")
}

pub(super) fn no_parameters(keyword: Span) -> Diagnostic {
    error("this `fun` has no parameter", keyword, "a name should follow")
        .with_reason("a function of nothing is a constant")
        .with_help("write `fun x -> e`, or leave `fun` out")
}

// Brackets.

pub(super) fn unclosed_bracket(opener: Span, opener_text: &str, span: Span, found: &str) -> Diagnostic {
    let closer = closer_text(opener_text);
    error(format!("{} is never closed", quoted(opener_text)), opener, "opened here")
        .with_label(span, format!("`{closer}` should stand before {}", quoted(found)))
        .with_help(format!("write `{closer}`"))
}

pub(super) fn mismatched_bracket(opener: Span, opener_text: &str, span: Span, found: &str) -> Diagnostic {
    let closer = closer_text(opener_text);
    error(format!("{} is closed by {}", quoted(opener_text), quoted(found)), opener, "opened here")
        .with_label(span, "closed here")
        .with_help(format!("write `{closer}`, or open with the other bracket"))
}

pub(super) fn unexpected_in_bracket(span: Span, found: &str, opener: Span, opener_text: &str) -> Diagnostic {
    let closer = closer_text(opener_text);
    error(format!("{} does not belong here", quoted(found)), span, "the expression before this is complete")
        .with_label(opener, "inside this bracket")
        .with_help(format!("close the bracket with `{closer}` before it, or write an operator or `,` between"))
}

fn closer_text(opener: &str) -> &'static str {
    match opener {
        "(" => ")",
        "[" => "]",
        _ => "}",
    }
}

pub(super) fn closes_nothing(span: Span, found: &str) -> Diagnostic {
    error(format!("{} closes nothing", quoted(found)), span, "no such bracket is open here")
        .with_help("remove it, or open the bracket")
}

pub(super) fn empty_parens(span: Span) -> Diagnostic {
    error("nothing stands in the parentheses", span, "empty")
        .with_reason("F~ has no empty value, and no functions without arguments")
        .with_help("to call `f` write its arguments after it: `f x y`")
}

pub(super) fn section(span: Span, operator: &str) -> Diagnostic {
    let diagnostic = error(
        format!("{} has only one operand", quoted(operator)),
        span,
        "a left operand, or the closing parenthesis, is missing",
    );
    let written = quoted(&format!("({operator})"));
    if operator.starts_with('*') {
        diagnostic.with_help(format!(
            "the operator as a function is written {written}; comments are written `// ...` or `/* ... */`"
        ))
    } else {
        diagnostic.with_help(format!(
            "the operator as a function is written {written}; with one operand given, `(fun x -> x {operator} 1)`"
        ))
    }
}

pub(super) fn tuple_of_one(span: Span) -> Diagnostic {
    error("a tuple of one", span, "a further part should stand here")
        .with_help("write `(a, b)`, or leave the comma out")
}

pub(super) fn empty_array(span: Span) -> Diagnostic {
    error("an array without elements", span, "empty")
        .with_reason("what it is an array of could not be known")
        .with_help("write `build 0 (fun i -> 0.0)` for an empty array of real numbers")
}

pub(super) fn empty_record(span: Span) -> Diagnostic {
    error("a record without fields", span, "empty").with_help("write `{ name = value }`")
}

pub(super) fn not_a_record(opener: Span, span: Span) -> Diagnostic {
    error("`{` starts a record", opener, "this one")
        .with_label(span, "`name = value` should stand in it")
        .with_reason("braces hold the fields of a record; they do not group")
        .with_help("write `{ name = value, other = value }`; to group, write parentheses")
}

pub(super) fn field_equals(span: Span, found: &str) -> Diagnostic {
    error("a field's value follows `=`", span, format!("{} stands here", quoted(found)))
        .with_reason("`:` is for types")
        .with_help("write `{ name = value }`")
}

// Functions and arguments.

pub(super) fn backslash(span: Span) -> Diagnostic {
    error("a function starts with `fun`, not `\\`", span, "here").with_help("write `fun x -> e`")
}

pub(super) fn python_lambda(span: Span, colon: Span) -> Diagnostic {
    error("a function starts with `fun`", span, "this is read as a function with its argument")
        .with_label(colon, "`->` belongs here")
        .with_help("write `fun x -> e`")
}

pub(super) fn bare_argument(span: Span, word: &str) -> Diagnostic {
    error(format!("{} as an argument needs parentheses", quoted(word)), span, "starts here")
        .with_reason("arguments are names, numbers and what stands in brackets")
        .with_help("put the whole argument in parentheses, such as `build n (fun i -> e)`")
}

pub(super) fn number_applied(function: &Expr, arg: &Expr, text: &str) -> Diagnostic {
    let snippet = |span: Span| text.get(span.range()).unwrap_or("");
    let (number, operand) = (snippet(function.span), snippet(arg.span));
    let product = if operand.len() <= MAX_QUOTED && !operand.contains('\n') {
        format!("`{number} * {operand}`")
    } else {
        "`*` between them".to_owned()
    };
    error(format!("{} is no function", quoted(number)), function.span, "applied to what follows")
        .with_label(arg.span, "as if this were its argument")
        .with_reason("a function and its argument are written one after the other: `f x`")
        .with_help(format!("to multiply, write {product}; before the result of a `let`, write `in`"))
}

pub(super) fn no_return(span: Span) -> Diagnostic {
    error("there is no `return`", span, "here")
        .with_reason("the value of a function is the expression after its `->`")
        .with_help("write the expression alone")
}

pub(super) fn elif(span: Span, found: &str) -> Diagnostic {
    error(format!("{} is written `else if`", quoted(found)), span, "here").with_help("write `else if`")
}

pub(super) fn bang(span: Span) -> Diagnostic {
    error("`!` is written `not`", span, "here").with_help("write `not condition`, or `a <> b`")
}

pub(super) fn single_and_or(span: Span, found: &str, meant: &str) -> Diagnostic {
    error(format!("`{found}` is written `{meant}`"), span, "here")
        .with_reason("conditions are joined with `&&` and `||`; F~ has no operators on bits")
        .with_help(format!("write `{meant}`"))
}

pub(super) fn assignment(span: Span) -> Diagnostic {
    error("`:=` changes nothing", span, "here")
        .with_reason("names in F~ keep their value")
        .with_help("bind a new name with `let x = e in`; to repeat, use `ifold`")
}

pub(super) fn chained_comparison(first: Span, second: Span) -> Diagnostic {
    error("comparisons do not chain", second, "the second comparison")
        .with_label(first, "the first one")
        .with_reason("the first comparison gives a truth value, and the second would compare that")
        .with_help("write `a < b && b < c`")
}

pub(super) fn semicolon(span: Span, help: &str) -> Diagnostic {
    error("`;` separates nothing in F~", span, "here").with_help(help)
}

pub(super) fn text_in_expression(span: Span) -> Diagnostic {
    error("a text is no value", span, "here")
        .with_reason("F~ computes with numbers; only an `import` has a text")
        .with_help("remove it")
}

pub(super) fn wildcard_in_expression(span: Span) -> Diagnostic {
    error("`_` has no value", span, "here")
        .with_reason("`_` stands for a parameter or a bound value that is not used")
        .with_help("give it a name where it is bound, and write that name here")
}

// Members and indices.

pub(super) fn dotted_index(span: Span) -> Diagnostic {
    error("no point stands before an index", span, "here").with_help("write `a[i]`")
}

pub(super) fn comma_in_index(span: Span) -> Diagnostic {
    error("one index per bracket", span, "here")
        .with_reason("a matrix is an array of arrays")
        .with_help("write `a[i][j]`")
}

pub(super) fn slice(span: Span) -> Diagnostic {
    error("an index is one number", span, "here")
        .with_reason("F~ has no slices in brackets")
        .with_help("write `vectorSlice v first last`, or `build n (fun i -> v[first + i])`")
}

pub(super) fn component_too_large(span: Span) -> Diagnostic {
    error("no tuple has so many parts", span, "here").with_help("components are `.0`, `.1`, ...")
}

pub(super) fn member_expected(span: Span) -> Diagnostic {
    error("a field or a component is missing after `.`", span, "a name or a number should stand here")
        .with_help("write `record.name`, or `tuple.0`")
}

// Patterns.

pub(super) fn keyword_as_name(span: Span, found: &str) -> Diagnostic {
    error(format!("{} is a keyword", quoted(found)), span, "a name should stand here")
        .with_help(format!("choose another name, such as `{found}_`"))
}

pub(super) fn comma_between_params(span: Span) -> Diagnostic {
    error("parameters are separated by blanks", span, "no comma here")
        .with_help("write `fun x y -> e`, or `fun (x, y) -> e` for one parameter that is a pair")
}

pub(super) fn number_as_param(span: Span) -> Diagnostic {
    error("a number is no parameter", span, "a name should stand here").with_help("write `fun x -> e`")
}

pub(super) fn let_without_name(span: Span, found: &str) -> Diagnostic {
    error("this `let` binds no name", span, format!("a name should stand here, not {}", quoted(found)))
        .with_help("write `let x = e`, or `let (a, b) = e`")
}

pub(super) fn let_modifier(span: Span, found: &str) -> Diagnostic {
    let diagnostic = error(format!("there is no `let {found}`"), span, "here");
    if found == "rec" {
        diagnostic
            .with_reason("functions in F~ do not call themselves: every program ends")
            .with_help("repeat with `ifold (fun state i -> e) start n`")
    } else {
        diagnostic.with_reason("names in F~ keep their value").with_help("write `let x = e`")
    }
}

pub(super) fn tuple_needs_parens(span: Span) -> Diagnostic {
    error("a pair is bound in parentheses", span, "this comma").with_help("write `let (a, b) = e`")
}

pub(super) fn type_in_tuple_pattern(span: Span) -> Diagnostic {
    error("a type for a part of a tuple", span, "here")
        .with_reason("a type is written for the whole parameter")
        .with_help("write `(x : Double) (y : Double)` for two parameters, `((x, y) : (Double, Double))` for a pair")
}

pub(super) fn empty_pattern(span: Span) -> Diagnostic {
    error("an empty parameter", span, "a name should stand here")
        .with_reason("a function of nothing is a constant")
        .with_help("write `let f = e`, or give it a parameter")
}

pub(super) fn pattern_expected(span: Span, found: &str) -> Diagnostic {
    error("a parameter is a name", span, format!("a name should stand here, not {}", quoted(found)))
        .with_help("write `x`, `(x : Double)` or `(a, b)`")
}

// Types.

pub(super) fn type_expected(span: Span, found: &str) -> Diagnostic {
    error(
        "a type is missing",
        span,
        format!("a type should stand here, not {}", quoted_or(found, "the end of the line")),
    )
    .with_help("write for example `Double`, `Index`, `Bool`, `[n]Double`, `(Double, Double)`, `Double => Double`")
}

fn quoted_or(text: &str, empty: &str) -> String {
    if text.is_empty() { empty.to_owned() } else { quoted(text) }
}

pub(super) fn array_without_element(span: Span) -> Diagnostic {
    error("an array of what?", span, "`<` should follow").with_help("write `Array<Double>`, or `[n]Double`")
}

pub(super) fn unclosed_angle(name: Span, span: Span, found: &str) -> Diagnostic {
    error("`Array<` is never closed", name, "opened here")
        .with_label(span, format!("`>` should stand before {}", quoted(found)))
        .with_help("write `Array<Double>`, or `[n]Double`")
}

pub(super) fn size_after_type(span: Span, element: &str) -> Diagnostic {
    error("a size stands before the type of the elements", span, "here")
        .with_help(format!("write {}", quoted(&format!("[n]{element}"))))
}

pub(super) fn comma_in_size(span: Span) -> Diagnostic {
    error("one size per bracket", span, "here")
        .with_reason("a matrix is an array of arrays")
        .with_help("write `[m][n]Double`")
}

pub(super) fn size_expected(span: Span, found: &str) -> Diagnostic {
    error("a size is missing", span, format!("a number or a name should stand here, not {}", quoted(found)))
        .with_help("sizes are written `3`, `n`, `2*n + 1`; leave the size out with `[]`")
}

pub(super) fn field_type(span: Span, found: &str) -> Diagnostic {
    error("a field's type follows `:`", span, format!("{} stands here", quoted(found)))
        .with_help("write `{ name : Double }`")
}

pub(super) fn record_type_without_fields(span: Span) -> Diagnostic {
    error("a record without fields", span, "`name : type` should stand in it").with_help("write `{ name : Double }`")
}

// Items.

pub(super) fn type_without_name(span: Span, found: &str) -> Diagnostic {
    error("this `type` has no name", span, format!("a name should stand here, not {}", quoted(found)))
        .with_help("write `type Name = { field : Double }`")
}

pub(super) fn type_without_equals(keyword: Span, span: Span, found: &str) -> Diagnostic {
    error("this `type` has no `=`", span, format!("`=` should stand here, not {}", quoted(found)))
        .with_label(keyword, "this one")
        .with_help("write `type Name = { field : Double }`")
}

pub(super) fn import_without_path(span: Span, found: &str) -> Diagnostic {
    error("import what?", span, format!("a path or a library module should stand here, not {}", quoted(found)))
        .with_help("write `import \"file.ft\"`, or `import linalg` for a module of the library")
}

pub(super) fn import_needs_quotes(span: Span) -> Diagnostic {
    error("a path stands in quotes", span, "here").with_help("write `import \"file.ft\"`")
}

pub(super) fn in_at_top(span: Span, keyword: Span) -> Diagnostic {
    error("a definition at the top of a file has no `in`", span, "here")
        .with_label(keyword, "what is defined here holds for the rest of the file")
        .with_help("remove `in`, and use the name in a further definition")
}

pub(super) fn item_not_in_column(span: Span, found: &str, first: bool, column: u32) -> Diagnostic {
    let diagnostic = error(format!("{} belongs to the definition above", quoted(found)), span, "here");
    if first {
        diagnostic
            .with_reason("it stands further right, and so inside the definition above")
            .with_help(format!("start the line at column {column}"))
    } else {
        diagnostic
            .with_reason("it stands on the line of another definition")
            .with_help("start each definition on a line of its own; inside an expression write `let x = e in`")
    }
}

pub(super) fn stray_branch(span: Span, found: &str) -> Diagnostic {
    error(format!("{} belongs to no `if`", quoted(found)), span, "here").with_help("write `if condition then a else b`")
}

pub(super) fn after_item(span: Span, found: &str) -> Diagnostic {
    error(format!("{} does not belong here", quoted(found)), span, "the definition is complete before this")
        .with_help("write an operator between, or start a definition on a line of its own")
}

pub(super) fn after_expr(span: Span, found: &str) -> Diagnostic {
    error(format!("{} does not belong here", quoted(found)), span, "the expression is complete before this")
        .with_help("write an operator between, or remove it")
}

pub(super) fn expr_at_top(span: Span, found: &str) -> Diagnostic {
    let diagnostic = error(
        format!("a file is made of definitions, and {} starts none", quoted(found)),
        span,
        "`let`, `type` or `import` should stand here",
    );
    match found {
        word if is_lambda_word(word) => diagnostic.with_help("a function is defined by `let f x y = e`"),
        "const" | "var" | "val" | "double" | "float" | "int" | "auto" => {
            diagnostic.with_help("a constant is defined by `let x = e`")
        }
        "open" | "use" | "using" | "from" | "include" => {
            diagnostic.with_help("another file is used by `import \"file.ft\"`")
        }
        "(" => diagnostic.with_help("to name a value write `let name = e`; comments are `// ...` or `/* ... */`"),
        _ => diagnostic.with_help("to name a value write `let name = e`"),
    }
}

pub(super) fn too_deep(span: Span) -> Diagnostic {
    Diagnostic::limitation("this is nested too deeply")
        .with_label(span, "here")
        .with_reason(format!("expressions and types nest at most {MAX_DEPTH} deep"))
        .with_help("name parts of it with `let`")
}
