"""What statements do, read off their syntax: how blocks end, which names they assign."""

from __future__ import annotations

import ast
import functools


def copied(target):
    """A target of an assignment as an expression."""
    made = type(target)(**{field: getattr(target, field) for field in target._fields if field != "ctx"}, ctx=ast.Load())
    return ast.copy_location(made, target)


def ends(statements):
    """Whether a `return`, `break` or `continue` stands in a block, not counting those of loops and functions in it."""
    for node in statements:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            return True
        if isinstance(node, ast.If) and (ends(node.body) or ends(node.orelse)):
            return True
        if returns_from_loop(node):
            return True
    return False


def returns_from_loop(node):
    """Whether a loop has a `return`, not counting those of functions in it."""
    return isinstance(node, (ast.For, ast.While)) and has_return(node.body)


def has_return(statements):
    for node in statements:
        if isinstance(node, ast.Return) or isinstance(node, (ast.For, ast.While)) and has_return(node.body):
            return True
        if isinstance(node, ast.If) and (has_return(node.body) or has_return(node.orelse)):
            return True
    return False


def leaves_loop(statements):
    """Whether a `break` of this loop, or a `return`, stands in its body."""
    return any(isinstance(node, (ast.Break, ast.Return)) or returns_from_loop(node) for node in of_this_loop(statements))


def is_endless(node):
    """Whether only `return` ends a loop."""
    if not isinstance(node, ast.While) or not isinstance(node.test, ast.Constant) or not node.test.value:
        return False
    return not any(isinstance(part, ast.Break) for part in of_this_loop(node.body))


def tested_inside(node):
    """A `while` as an endless one that its conditions leave: what they assign is assigned in the body."""
    tests = node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else [node.test]
    leave = [ast.copy_location(ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], []), test) for test in tests]
    made = ast.While(ast.Constant(True), [*leave, *node.body], [])
    return ast.fix_missing_locations(ast.copy_location(made, node))


def of_this_loop(statements):
    """The statements of a loop, without those of loops in it."""
    for node in statements:
        yield node
        if isinstance(node, ast.If):
            yield from of_this_loop(node.body)
            yield from of_this_loop(node.orelse)


def targets(nodes):
    """The names that targets of assignments assign to."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, (ast.Tuple, ast.List)):
            found |= targets(node.elts)
        elif isinstance(node, (ast.Subscript, ast.Starred, ast.Attribute)):
            found |= targets([node.value])
    return found


def rebound_names(statements, augmented=False):
    """The names that a block gives other values: not those whose elements it writes; with those of `x += y` where asked."""
    found = set()
    for node in statements:
        if augmented and isinstance(node, ast.AugAssign):
            found |= targets(plain(node.target))
        if isinstance(node, ast.Assign):
            found |= targets([name for target in node.targets for name in plain(target)])
        elif isinstance(node, ast.AnnAssign):
            found |= targets(plain(node.target))
        elif isinstance(node, ast.For):
            found |= targets(plain(node.target)) | rebound_names(node.body, augmented)
        elif isinstance(node, ast.While):
            found |= rebound_names(node.body, augmented)
        elif isinstance(node, ast.If):
            found |= rebound_names(node.body, augmented) | rebound_names(node.orelse, augmented)
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
            continue
        found |= inline_targets(node)
    return found


@functools.lru_cache(maxsize=4096)
def inline_targets(node):
    """The names that expressions in a statement or an expression assign to, with `:=`."""
    return frozenset(part.target.id for part in ast.walk(node) if isinstance(part, ast.NamedExpr))


def plain(target):
    """The names in a target that are assigned as wholes."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for part in target.elts for name in plain(part)]
    return [target] if isinstance(target, ast.Name) else []


def written_names(statements):
    """The names that a block assigns to, in its loops and branches too."""
    found = set()
    for node in statements:
        if isinstance(node, ast.Assign):
            found |= targets(node.targets)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            found |= targets([node.target])
        elif isinstance(node, ast.For):
            found |= targets([node.target]) | written_names(node.body)
        elif isinstance(node, ast.While):
            found |= written_names(node.body)
        elif isinstance(node, ast.If):
            found |= written_names(node.body) | written_names(node.orelse)
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
            continue
        found |= inline_targets(node)
    return found


def stored_names(statements):
    """The names of arrays whose elements a block writes, but for those that a call writes to."""
    found = set()
    for node in ast.walk(ast.Module(body=list(statements), type_ignores=[])):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            wanted = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= targets([t for t in wanted if isinstance(t, ast.Subscript) or isinstance(node, ast.AugAssign)])
    return found
