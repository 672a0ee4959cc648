"""Derivatives of functions, by some of their arguments: functions again."""

from __future__ import annotations

import inspect

from .arguments import count_leaves, for_all_sizes, spec_of, to_floats
from .code import assemble, count_parts, structure_of
from .errors import Error, ShapeError, TypeError_
from .fit import Fit
from .evaluator import Call, Evaluator
from .function import Function
from .trees import template

#: Derivatives that take directions, one for each argument they are by; `vjp` takes weights of the result.
WITH_DIRECTIONS = ("jvp", "hvp")


class Derivative(Evaluator):
    """A derivative of a function, by some of its arguments."""

    def __init__(self, function, what, argnums=0, with_value=False, options=()):
        self.function = function if isinstance(function, Function) else Function(function)
        self.what = what
        self.with_value = with_value
        self.is_single = isinstance(argnums, (int, str))
        chosen = (argnums,) if self.is_single else tuple(argnums)
        self.argnums = tuple(self._position(k) for k in chosen)
        if len(set(self.argnums)) != len(self.argnums) or not self.argnums:
            raise Error(f"argnums={argnums} names an argument twice or none")
        self.options = tuple(options)
        self.__name__ = f"{what}_of_{self.function.__name__}"
        self.__doc__ = f"The {what} of {self.function.__name__}."
        self.n_extra = len(self.argnums) if what in WITH_DIRECTIONS else int(what == "vjp")
        self.__signature__ = self._signature()
        self._takes(self.function._parameters, self.n_extra)

    def _signature(self):
        """That of the function, with the directions after its arguments."""
        parameters = self.function._parameters
        if not self.n_extra:
            return inspect.Signature(parameters)
        only = inspect.Parameter.POSITIONAL_ONLY
        words = ["weights"] if self.what == "vjp" else [f"{self.function._names[k]}_direction" for k in self.argnums]
        plain = [p.replace(kind=only, default=p.empty) for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.KEYWORD_ONLY)]
        return inspect.Signature([*plain, *[inspect.Parameter(word, only) for word in words]])

    def _position(self, k):
        names = self.function._names
        if isinstance(k, str):
            if k not in names:
                raise Error(f"`{self.function.__name__}` has no argument `{k}`", remedy=f"it has {', '.join(names)}")
            return names.index(k)
        if isinstance(k, bool) or not isinstance(k, int) or not -len(names) <= k < len(names):
            raise Error(f"argnums={k} is out of range", remedy=f"`{self.function.__name__}` has {len(names)} arguments")
        return k % len(names)

    def __repr__(self):
        return f"<chainrule {self.what} of {self.function.__name__}>"

    @property
    def compilations(self):
        """How many times the function was captured."""
        return self.function.compilations

    def _split(self, args):
        """The arguments of the function, and the directions."""
        n = self.n_extra
        if n and len(args) <= n:
            word = "weight" if self.what == "vjp" else "direction"
            raise TypeError_(f"`{self.__name__}` takes the arguments of `{self.function.__name__}`, then {n} "
                             f"{word}{'s' if n > 1 else ''}")
        return (args[:-n], args[-n:]) if n else (args, ())

    def _values(self, args, kwargs):
        """The arguments of the function, with floats for ints where it is derived by them."""
        values = list(self.function._bind(args, kwargs))
        for k in self.argnums:
            values[k] = to_floats(values[k])
        return values

    def _code(self, entry, by):
        return entry.code((self.what, self.argnums, self.with_value, self.options),
                          lambda: entry.function.derive(self.what, by, self.with_value, **dict(self.options)))

    def _prepare(self, args, kwargs, fit=Fit.ALL):
        args, directions = self._split(args)
        values = self._values(args, kwargs)
        entry, leaves, keys = self.function._entry(values, fit)
        by = self.leaf_names(entry, values)
        keys = [(key, k in self.argnums) for k, key in enumerate(keys)]
        leaves = entry.taken(leaves)
        for k, direction in enumerate(directions):
            like = values[self.argnums[k]] if self.what in WITH_DIRECTIONS else None
            keys.append((self._direction(direction, like, leaves), True))
        code = self._code(entry, by)
        return Call(entry, code, leaves, self._template(entry, values, len(code.outputs)), keys, by)

    def leaf_names(self, entry, values):
        """Names of the leaves of the chosen arguments."""
        names, k, found = entry.names, 0, {}
        for position, value in enumerate(values):
            n = count_leaves(value)
            found[position] = names[k:k + n]
            k += n
        by = [name for position in self.argnums for name in found[position]]
        if not by:
            raise TypeError_(f"`{self.function.__name__}` is differentiated by an argument without numbers")
        return by

    def _direction(self, direction, like, leaves):
        """The key of a direction, shaped as the argument `like`; its arrays are added to `leaves`."""
        made = []
        key = spec_of(to_floats(direction), "direction", made)
        if like is not None:
            wanted = []
            spec_of(like, "argument", wanted)
            shapes, expected = [a.shape for a in made], [a.shape for a in wanted]
            if shapes != expected:
                one = lambda list_: list_[0] if len(list_) == 1 else tuple(list_)
                raise ShapeError(f"a direction has the shape {one(shapes)}, its argument has {one(expected)}")
        leaves.extend(made)
        return for_all_sizes([key])[0]

    def _template(self, entry, values, n):
        """How the derivative is put together: numbers of leaves in tuples and lists."""
        parts = iter(range(n))
        value = assemble(entry.structure, parts) if self.with_value else None
        chosen = [structure_of(values[k]) for k in self.argnums]
        if self.what == "jvp":
            derivative = assemble(entry.smooth, parts)
        elif self.what == "hessian":
            derivative = self._single([nest(one, chosen, parts, self._single) for one in chosen])
        elif self.what == "jacobian" and entry.structure is not None:
            # The library has a block for each argument and, within, each result.
            found, n_results = list(parts), count_parts(entry.smooth)
            of_result = [iter(found[k::n_results]) for k in range(n_results)]
            blocks = [self._single([assemble(one, numbers) for one in chosen]) for numbers in of_result]
            derivative = assemble(entry.smooth, iter(blocks))
        else:
            derivative = self._single([assemble(one, parts) for one in chosen])
        return (value, derivative) if self.with_value else derivative

    def _single(self, made):
        return made[0] if self.is_single else tuple(made)

    def __reduce__(self):
        argnums = self.argnums[0] if self.is_single else self.argnums
        return (type(self), (self.function, self.what, argnums, self.with_value, self.options))


def nest(structure, columns, parts, single):
    """Blocks of second derivatives: for each leaf of `structure` a row of blocks, by all leaves of the columns."""
    if structure is False:
        return None
    if structure is None:
        return single([assemble(one, parts) for one in columns])
    return template(structure[1], [nest(part, columns, parts, single) for part in structure[0]])


def gradient(function, argnums=0, **options):
    """The gradient of a function with a scalar result, shaped like its argument."""
    return derivative(function, "gradient", argnums, False, options)


def value_and_gradient(function, argnums=0, **options):
    """The value and the gradient, in one call."""
    return derivative(function, "gradient", argnums, True, options)


def jacobian(function, argnums=0, **options):
    """The Jacobian: the extents of the result, then those of the argument."""
    return derivative(function, "jacobian", argnums, False, options)


def hessian(function, argnums=0, **options):
    """The Hessian of a function with a scalar result."""
    return derivative(function, "hessian", argnums, False, options)


def hessian_diagonal(function, argnums=0, **options):
    """The diagonal of the Hessian, shaped like the argument."""
    return derivative(function, "hessian_diagonal", argnums, False, options)


def jvp(function, argnums=0, with_value=False, **options):
    """The derivative along a direction, which is passed after the arguments."""
    return derivative(function, "jvp", argnums, with_value, options)


def vjp(function, argnums=0, with_value=False, **options):
    """The weights of the results, which are passed after the arguments, times the Jacobian."""
    return derivative(function, "vjp", argnums, with_value, options)


def hvp(function, argnums=0, with_value=False, **options):
    """The Hessian times a direction, which is passed after the arguments."""
    return derivative(function, "hvp", argnums, with_value, options)


def derivative(function, what, argnums, with_value, options):
    """A derivative, with `argnames` for `argnums`, a `strategy`, a number of `checkpoints`."""
    options = dict(options)
    argnames = options.pop("argnames", None)
    if argnames is not None:
        argnums = argnames
    given = {}
    for name, types_, word in (("strategy", str, "the name of a strategy"), ("checkpoints", int, "a positive number")):
        value = options.pop(name, None)
        if value is None:
            continue
        if not isinstance(value, types_) or isinstance(value, bool) or (types_ is int and not 0 < value < 2**32):
            raise TypeError_(f"{name}={value!r} is not {word}")
        given[name] = value
    if options:
        raise TypeError(f"{what}() got an unexpected keyword argument {next(iter(options))!r}")
    return Derivative(function, what, argnums, with_value, tuple(sorted(given.items())))


grad = gradient
value_and_grad = value_and_gradient
