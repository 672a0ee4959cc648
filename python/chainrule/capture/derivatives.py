"""Derivatives in captured functions: `cr.gradient(f)(x)` is the derivative of a lambda of the program.

In: a call of a derivative, or of `cr.gradient` and its relatives. Out: the value of the derivative, or a request that is called later.
"""

from __future__ import annotations

import inspect
import types

from .values import Known, Num, Row, describe

#: The word for each derivative in the program.
WORDS = {"gradient": "gradient", "jacobian": "jacobian", "hessian": "hessian", "hessian_diagonal": "hessianDiagonal", "jvp": "jvp",
         "hvp": "hvp", "vjp": "vjp"}


class Request:
    """A derivative of a function that is known or defined in the captured one."""

    def __init__(self, what, callee, argnums, with_value):
        self.what = what
        self.callee = callee
        self.is_single = isinstance(argnums, (int, str))
        self.argnums = (argnums,) if self.is_single else tuple(argnums)
        self.with_value = with_value


def call(capture, node, target, args, kwargs):
    """Calls `target` where it is a derivative, or makes one: `None` where it is something else."""
    from .. import derivative as public
    from .. import sparse
    if isinstance(target, sparse.SparseDerivative):
        capture.w.fail("a sparse derivative in a captured function", "call the dense one")
    if isinstance(target, public.Derivative):
        argnums = target.argnums[0] if target.is_single else target.argnums
        target = Request(target.what, Known(target.function), argnums, target.with_value)
    if isinstance(target, Request):
        return evaluate(capture, node, target, args, kwargs)
    makers = {getattr(public, name): name for name in (*WORDS, "value_and_gradient")}
    what = makers.get(target) if inspect.isfunction(target) else None
    if what is None:
        return None
    if len(args) not in (1, 2) or not set(kwargs) <= {"argnums", "argnames", "with_value"}:
        capture.w.fail(f"`cr.{what}` is called with other arguments", "pass the function, and `argnums`")
    options = {key: plain(capture, value) for key, value in kwargs.items()}
    argnums = plain(capture, args[1]) if len(args) == 2 else options.get("argnames", options.get("argnums", 0))
    with_value = what == "value_and_gradient" or bool(options.get("with_value", False))
    return Known(Request("gradient" if what == "value_and_gradient" else what, args[0], argnums, with_value))


def plain(capture, value):
    """A known value: a number, a name, or a tuple of them."""
    if isinstance(value, Known):
        return value.value
    if isinstance(value, Row):
        return tuple([plain(capture, item) for item in value.items])
    if isinstance(value, Num) and value.dim is not None and not value.dim.coef:
        return value.dim.const
    return capture.w.fail(f"{describe(value)} chooses the arguments of a derivative", "write a number or a name")


def names_of(capture, callee):
    """Names of the parameters of a function."""
    if isinstance(callee, Known):
        python = getattr(callee.value, "__wrapped_python__", callee.value)
        try:
            return list(inspect.signature(python).parameters)
        except (TypeError, ValueError):
            return capture.w.fail(f"a derivative of {describe(callee)}", "differentiate a Python function")
    if not hasattr(callee, "node"):
        return capture.w.fail(f"a derivative of {describe(callee)}", "differentiate a Python function")
    spec = callee.node.args
    return [part.arg for part in [*spec.posonlyargs, *spec.args]]


def evaluate(capture, node, request, args, kwargs):
    w, what = capture.w, request.what
    n_extra = len(request.argnums) if what in ("jvp", "hvp") else int(what == "vjp")
    if n_extra and len(args) <= n_extra:
        w.fail(f"`cr.{what}` takes the arguments of the function, then {n_extra} more", "pass directions after the arguments")
    args, extra = (list(args[:-n_extra]), args[-n_extra:]) if n_extra else (list(args), [])
    names = names_of(capture, request.callee)
    chosen = []
    for k in request.argnums:
        k = names.index(k) if k in names else k
        if not isinstance(k, int) or not -len(names) <= k < len(names):
            w.fail(f"argnums={k!r} is out of range", f"the function has the arguments {', '.join(names)}")
        k %= len(names)
        if k >= len(args) and names[k] not in kwargs:
            w.fail(f"`{names[k]}`, by which is differentiated, is not passed", "pass it")
        chosen.append(k)
    value_of = lambda k: args[k] if k < len(args) else kwargs[names[k]]
    by = [w.cast(value_of(k), "f") for k in chosen]
    point = by[0].term if len(by) == 1 else w.program.tuple([x.term for x in by])

    def at(param):
        """The function at the parameter of a lambda."""
        own_args, own_kwargs = list(args), dict(kwargs)
        for position, (k, x) in enumerate(zip(chosen, by)):
            moved = Num(param if len(by) == 1 else w.program.component(param, position), "f", x.dims)
            if k < len(own_args):
                own_args[k] = moved
            else:
                own_kwargs[names[k]] = moved
        result = capture.call(node, request.callee, own_args, own_kwargs)
        if isinstance(result, Row):
            w.fail(f"`cr.{what}` of a function with several results", "differentiate a function with one result")
        return w.cast(result, "f")

    def written():
        """The function as a lambda, and its result in there."""
        (param,) = w.program.open(["p"])
        result = at(param)
        return w.program.close(result.term), result

    def shaped(term):
        """A value with the shape of the arguments."""
        if len(by) == 1:
            made = Num(term, "f", by[0].dims)
        else:
            made = Row([Num(w.program.component(term, k), "f", x.dims) for k, x in enumerate(by)])
        return made if request.is_single or len(by) > 1 else Row([made])

    if what in ("jacobian", "hessian") and len(by) > 1:
        w.fail(f"`cr.{what}` by several arguments in a captured function", "take one after the other")
    function, result = written()
    if what not in ("jvp", "vjp", "jacobian") and result.rank:
        w.fail(f"`cr.{what}` of a function whose result is an array", "differentiate a function with a scalar result, or take the jacobian")
    for name in {name for dim in result.dims for name in dim.coef}:
        if not w.names[name].is_visible:
            w.fail("the shape of the result is computed in the function that is differentiated", "compute it before")
    if what == "jvp":
        directions = [w.cast(d, "f") for d in extra]
        along = directions[0].term if len(by) == 1 else w.program.tuple([d.term for d in directions])
        made = Num(w.program.apply("jvp", [function, point, along]), "f", result.dims)
    elif what == "hvp":
        directions = [w.cast(d, "f") for d in extra]
        along = directions[0].term if len(by) == 1 else w.program.tuple([d.term for d in directions])
        made = shaped(w.program.apply("hvp", [function, point, along]))
    elif what == "vjp":
        made = shaped(w.program.apply("vjp", [function, point, w.cast(extra[0], "f").term]))
    elif what == "jacobian":
        made = jacobian(w, function, by[0], result, point)
        made = made if request.is_single else Row([made])
    elif what == "hessian":
        made = hessian(w, function, by[0], point)
        made = made if request.is_single else Row([Row([made])])
    else:
        made = shaped(w.program.apply(WORDS[what], [function, point]))
    if request.with_value:
        return Row([capture.call(node, request.callee, args, kwargs), made])
    return made


def jacobian(w, function, x, result, point):
    if x.rank == 0:
        return Num(w.program.apply("derivative", [function, point]), "f", result.dims)
    if result.rank == 0:
        return Num(w.program.apply("gradient", [function, point]), "f", x.dims)
    if result.rank == 1 and x.rank == 1:
        return Num(w.program.apply("jacobian", [function, point]), "f", (*result.dims, *x.dims))
    return w.fail("`cr.jacobian` with matrices in a captured function", "flatten them, or use `cr.jvp` and `cr.vjp`")


def hessian(w, function, x, point):
    if x.rank == 1:
        return Num(w.program.apply("hessian", [function, point]), "f", (*x.dims, *x.dims))
    if x.rank == 0:
        return Num(w.program.apply("hessianDiagonal", [function, point]), "f", ())
    return w.fail("`cr.hessian` by a matrix in a captured function", "flatten it, or use `cr.hvp`")


#: Attribute of a Python function that states its derivative.
RULE = "__chainrule_derivative__"


def by_rule(capture, node, function, args, kwargs):
    """Calls a function that states its derivative: the Jacobian by each argument of floats, in their order."""
    w, rule = capture.w, getattr(function, RULE)
    bare = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    bare.__kwdefaults__ = function.__kwdefaults__
    bound = inspect.signature(bare).bind(*args, **kwargs)
    missing = [p for name, p in bound.signature.parameters.items() if name not in bound.arguments and p.default is not p.empty]
    values = {**bound.arguments, **{p.name: capture.capture.lift(p.default) for p in missing}}
    if any(isinstance(value, tuple) for value in values.values()):
        w.fail(f"`{function.__name__}` states its derivative and takes `*args`", "name its arguments")
    number = lambda v: isinstance(v, Num) or isinstance(v, Known) and isinstance(v.value, float)
    by = {name: w.num(value) for name, value in values.items() if number(value)}
    by = {name: value for name, value in by.items() if value.kind == "f"}
    if not by:
        return capture.inline_object(bare, [], values)
    rules = capture.__dict__.setdefault("rules", {})
    if function in rules:
        return of_itself(w, function, rules[function], values, by)

    def parts(term):
        """The arguments in a parameter of a lambda."""
        if len(by) == 1:
            return {name: Num(term, "f", x.dims) for name, x in by.items()}
        return {name: Num(w.program.component(term, k), "f", x.dims) for k, (name, x) in enumerate(by.items())}

    def slopes(itself, term):
        """The Jacobians that the rule states, of the arguments in a parameter; `itself` is the function with its derivative."""
        rules[function] = itself, values, by, dims
        found = capture.inline_object(rule, [], {**values, **parts(term)})
        del rules[function]
        found = found.items if isinstance(found, Row) and len(by) > 1 else [found]
        if len(found) != len(by):
            w.fail(f"the derivative of `{function.__name__}` has {len(found)} parts", f"return one for each of {', '.join(by)}")
        found = [w.cast(slope, "f") for slope in found]
        for slope, (name, x) in zip(found, by.items()):
            if slope.rank != len(dims) + x.rank:
                w.fail(f"the derivative of `{function.__name__}` by `{name}` has {slope.rank} dimensions, not {len(dims) + x.rank}",
                       "return the extents of the result, then those of the argument")
        return found

    def sum_of(dims_, element):
        return w.total(list(dims_), element) if dims_ else element([])

    def array_of(dims_, element):
        return w.build(tuple(dims_), element) if dims_ else element([])

    at = lambda array, indices: w.element(array, list(indices)) if indices else array
    product = lambda a, b: Num(w.program.infix("*", a.term, b.term), "f")
    plus = lambda a, b: Num(w.program.infix("+", a.term, b.term), "f")

    (p,) = w.program.open(["p"])
    result = capture.inline_object(bare, [], {**values, **parts(p)})
    if isinstance(result, Row):
        w.fail(f"`{function.__name__}` states its derivative and has several results", "return one number or array")
    dims = w.cast(result, "f").dims
    plain_ = w.program.close(w.cast(result, "f").term)
    for name in {name for dim in dims for name in dim.coef}:
        if not w.names[name].is_visible:
            w.fail(f"the shape of the result of `{function.__name__}` is computed in it", "compute it before")

    itself, p, _, d = w.program.open(["self", "p", "y", "d"])
    along = parts(d)
    stated = slopes(itself, p)

    def forward(i):
        total = None
        for slope, (name, x) in zip(stated, by.items()):
            term = sum_of(x.dims, lambda j: product(at(slope, [*i, *j]), at(along[name], j)))  # noqa: B023
            total = term if total is None else plus(total, term)
        return total

    first = w.program.close(array_of(dims, forward).term)
    itself, p, _, a = w.program.open(["self", "p", "y", "a"])
    weight, stated = Num(a, "f", dims), slopes(itself, p)
    against = [array_of(x.dims, lambda j: sum_of(dims, lambda i: product(at(weight, i), at(slope, [*i, *j]))))  # noqa: B023
               for slope, x in zip(stated, by.values())]
    second = w.program.close(against[0].term if len(by) == 1 else w.program.tuple([part.term for part in against]))
    terms = [x.term for x in by.values()]
    point = terms[0] if len(by) == 1 else w.program.tuple(terms)
    return Num(w.program.apply("withDerivative", [plain_, first, second, point]), "f", dims)


def of_itself(w, function, outer, values, by):
    """A call of a function in the rule that states its derivative: at other numbers of the same shapes."""
    itself, others, known, dims = outer
    if set(by) != set(known) or any(x.dims != known[name].dims for name, x in by.items()):
        w.fail(f"`{function.__name__}` is called with other shapes in its derivative", "call it with arrays of the same extents")
    for name in set(values) - set(by):
        a, b = values[name], others[name]
        same = a is b or isinstance(a, Known) and isinstance(b, Known) and a.value == b.value
        if not same:
            w.fail(f"`{function.__name__}` is called with another `{name}` in its derivative", f"pass `{name}` on")
    terms = [x.term for x in by.values()]
    point = terms[0] if len(by) == 1 else w.program.tuple(terms)
    return Num(w.program.apply(itself.name, [point]), "f", dims)
