//! F~ text: lexer, parser, tree with spans, formatter
