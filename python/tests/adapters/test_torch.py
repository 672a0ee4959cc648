"""Functions in PyTorch programs, against the same mathematics in PyTorch."""

import numpy as np
import pytest

import chainrule as cr

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from chainrule.adapters import torch as adapter  # noqa: E402
from chainrule.adapters.leaves import entrance  # noqa: E402

to_torch = adapter.to_torch
X = torch.tensor(np.random.default_rng(0).normal(size=6))
POINTS = torch.tensor(np.random.default_rng(1).normal(size=(3, 4, 6)))
#: Functions of a function, in PyTorch.
TRANSFORMS = {
    "value": lambda f: f, "grad": torch.func.grad, "jacfwd": torch.func.jacfwd, "reverse twice": lambda f: torch.func.jacrev(torch.func.jacrev(f)),
    "forward twice": lambda f: torch.func.jacfwd(torch.func.jacfwd(f)), "hessian": torch.func.hessian,
    "reverse over forward": lambda f: torch.func.jacrev(torch.func.jacfwd(f)), "third order": lambda f: torch.func.jacfwd(torch.func.hessian(f)),
}


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def rosenbrock_in_torch(x):
    return torch.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def leaf(*shape):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3)).requires_grad_()


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    transform = TRANSFORMS[name]
    ours, theirs = transform(to_torch(rosenbrock)), transform(rosenbrock_in_torch)
    torch.testing.assert_close(ours(X), theirs(X))
    torch.testing.assert_close(torch.vmap(torch.vmap(ours))(POINTS), torch.vmap(torch.vmap(theirs))(POINTS))


def test_backward():
    f, x, y = to_torch(rosenbrock), leaf(6), leaf(6)
    for _ in range(2):
        f(torch.sin(x)).backward()
        rosenbrock_in_torch(torch.sin(y)).backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_gradcheck():
    f = to_torch(rosenbrock)
    assert torch.autograd.gradcheck(f, (leaf(6),), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, (leaf(6),), check_fwd_over_rev=True)
    several = to_torch(lambda x, k, at: (x[at] * k, np.sum(np.sin(x)) * k ** 2))
    at = torch.tensor([0, 2, 2])
    assert torch.autograd.gradcheck(lambda x, k: several(x, k, at), (leaf(4), leaf()), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda x, k: several(x, k, at), (leaf(4), leaf()))


def test_opcheck():
    program = entrance(cr.function(lambda x, k: (x * k, np.sum(x) > k)), [np.zeros(6), 1.0], [False, False]).program
    number = adapter.number_of(program)
    for operands, n_axes in (((leaf(6), leaf()), 0), ((leaf(3, 6), leaf(1)), 1), ((leaf(2, 1, 6), leaf(1, 3)), 2)):
        done = torch.library.opcheck(adapter.evaluate, (list(operands), number, [], n_axes, torch.float64))
        assert set(done.values()) == {"SUCCESS"}
        out = adapter.evaluate(list(operands), number, [], n_axes, torch.float64)[0]
        torch.testing.assert_close(out, operands[0] * operands[1].unsqueeze(-1))
        got = torch.autograd.grad((out ** 2).sum(), operands)
        torch.testing.assert_close(got, torch.autograd.grad(((operands[0] * operands[1].unsqueeze(-1)) ** 2).sum(), operands))


def test_points_of_some_arguments():
    f, g = to_torch(lambda x, k: np.sum(np.sin(x) * k) * x), lambda x, k: torch.sum(torch.sin(x) * k) * x
    k = torch.arange(3.0, dtype=torch.float64)
    nested = lambda q: torch.vmap(torch.vmap(q, (0, None)), (None, 0))
    torch.testing.assert_close(nested(f)(POINTS[0], k), nested(g)(POINTS[0], k))
    total = lambda q: torch.func.grad(lambda x, k: (nested(q)(x, k) ** 2).sum(), (0, 1))
    torch.testing.assert_close(total(f)(POINTS[0], k), total(g)(POINTS[0], k))


def test_arguments_and_results_of_several_parts():
    f = to_torch(lambda p, k: ({"a": np.sin(p["u"]) * k, "n": p["n"] + 1}, p["u"] > 0.0))
    p = {"u": leaf(3), "n": torch.tensor([1, 2])}
    first, second = f(p, 2.0)
    torch.testing.assert_close(first["a"], torch.sin(p["u"]) * 2.0)
    assert first["n"].tolist() == [2, 3] and second.dtype == torch.bool and not first["n"].requires_grad
    first["a"].sum().backward()
    torch.testing.assert_close(p["u"].grad, 2.0 * torch.cos(p["u"]))


def test_dtypes():
    f = to_torch(rosenbrock)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = (0.3 * X).to(dtype).requires_grad_()
        value = f(x)
        value.backward()
        assert value.dtype == dtype and x.grad.dtype == dtype
        torch.testing.assert_close(value.double(), rosenbrock_in_torch(x.double()), rtol=1e-2, atol=1e-2)
    assert to_torch(lambda x, y: x + y)(torch.ones(2), torch.ones(2, dtype=torch.float64)).dtype == torch.float64
    assert to_torch(lambda x, k: x * k)(torch.ones(2), 2.0).dtype == torch.float32


def test_tensors_of_every_layout():
    f = to_torch(lambda a: a * 2.0)
    a = leaf(4, 6)
    for view in (a.T, a[::2], a[:, 1], a.expand(2, 4, 6), torch.zeros(0, 3, dtype=torch.float64), a.detach(), torch.nn.Parameter(a.detach())):
        torch.testing.assert_close(f(view), view * 2.0)
    for wrong in (torch.ones(3).to_sparse(), torch.ones(2, dtype=torch.complex64), "text", None):
        with pytest.raises((cr.Error, TypeError)):
            f(wrong)


def test_integers_that_determine_sizes():
    f = to_torch(lambda x, n: x ** n * np.ones(n))
    assert f(torch.tensor(2.0), 3).tolist() == [8.0] * 3 and f(torch.tensor(2.0), 2).tolist() == [4.0] * 2
    with pytest.raises(cr.Limitation, match="static"):
        f(torch.tensor(2.0), torch.tensor(3))


def test_compile():
    ours = to_torch(rosenbrock)
    f = torch.compile(lambda x: ours(torch.sin(x)) * 2.0, backend="aot_eager")
    x, y = leaf(6), leaf(6)
    f(x).backward()
    (rosenbrock_in_torch(torch.sin(y)) * 2.0).backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_a_step_of_training():
    def layer(x, w, b):
        return np.tanh(x @ w + b)

    f = to_torch(layer)
    w, b = leaf(6, 2), leaf(2)
    optimizer = torch.optim.SGD([w, b], lr=0.1)
    before = f(POINTS[0], w, b).square().sum()
    for _ in range(20):
        optimizer.zero_grad()
        f(POINTS[0], w, b).square().sum().backward()
        optimizer.step()
    assert f(POINTS[0], w, b).square().sum() < 0.5 * before


def test_failures():
    f = to_torch(lambda x, at: x[at])
    with pytest.raises(cr.Error, match="elements"):
        f(X, torch.tensor(99))
    with pytest.raises(cr.ShapeError):
        to_torch(lambda x, y: x + y)(torch.ones(2), torch.ones(3))
