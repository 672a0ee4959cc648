"""Arguments and results that are dicts, NamedTuples, dataclasses, lists and tuples in each other; derivatives have the same structure."""

import pickle
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
from support import same

import chainrule as cr

rng = np.random.default_rng(2)
X, Y = rng.normal(size=(7, 3)), rng.normal(size=7)


@dataclass
class Layer:
    weights: np.ndarray
    bias: np.ndarray
    kind: str = "tanh"

    def __call__(self, x):
        return x @ self.weights + self.bias

    def apply(self, x):
        z = x @ self.weights + self.bias
        return np.tanh(z) if self.kind == "tanh" else z


@dataclass(frozen=True)
class State:
    position: np.ndarray
    speed: float


Pair = namedtuple("Pair", "left right")


def parameters():
    r = np.random.default_rng(4)
    return {"layers": [Layer(r.normal(size=(3, 4)), r.normal(size=4)), Layer(r.normal(size=(4, 1)), r.normal(size=1), "linear")],
            "scale": 0.7, "pair": Pair(r.normal(size=2), (0.3, 1.1))}


def predict(p, x):
    for layer in p["layers"]:
        x = layer.apply(x)
    left, (a, b) = p["pair"]
    return p["scale"] * x[:, 0] + left[0] * a - left[1] * b * p["pair"].right[1]


def loss(p, x, y):
    return np.mean((predict(p, x) - y) ** 2)


def moved(p, path, h):
    """A copy of the parameters with one number changed."""
    p = parameters() if p is None else p
    owner, index = path(p)
    owner[index] += h
    return p


def test_a_loss_of_nested_parameters():
    p = parameters()
    same(cr.function(loss)(p, X, Y), loss(p, X, Y))
    for _ in range(2):
        g = cr.gradient(loss)(p, X, Y)
        assert type(g) is dict and list(g) == ["layers", "scale", "pair"]
        assert [type(layer) for layer in g["layers"]] == [Layer, Layer] and type(g["pair"]) is Pair and type(g["pair"].right) is tuple
        assert g["layers"][0].kind is None
        for part, path in [
            (g["layers"][0].weights[1, 2], lambda p: (p["layers"][0].weights, (1, 2))), (g["layers"][1].bias[0], lambda p: (p["layers"][1].bias, 0)),
            (g["scale"], lambda p: (p, "scale")), (g["pair"].left[1], lambda p: (p["pair"].left, 1)),
        ]:
            slope = (loss(moved(None, path, 1e-5), X, Y) - loss(moved(None, path, -1e-5), X, Y)) / 2e-5
            assert abs(part - slope) < 1e-8
    value, g = cr.value_and_gradient(loss)(p, X, Y)
    same(value, loss(p, X, Y))
    direction = {"layers": g["layers"], "scale": g["scale"], "pair": g["pair"]}
    same(cr.jvp(loss)(p, X, Y, direction), sum(np.sum(leaf ** 2) for leaf in numbers(g)), rtol=1e-10)


def numbers(tree):
    from chainrule.trees import parts_of
    found = parts_of(tree)
    return [leaf for part in found[0] for leaf in numbers(part)] if found else [] if tree is None else [tree]


@cr.function
def step(state, dt):
    return State(state.position + dt * state.speed, state.speed * (1 - dt)), {"energy": 0.5 * state.speed ** 2, "at": [state.position, dt]}


def test_results_in_the_same_form():
    state = State(np.array([1.0, 2.0]), 3.0)
    for dt in (0.1, 0.2):
        new, report = step(state, dt)
        assert type(new) is State and type(report) is dict and type(report["at"]) is list
        same([new.position, new.speed, report["energy"], report["at"][0]], [state.position + dt * 3, 3 * (1 - dt), 4.5, state.position])
    new, report = cr.jacobian(step, argnums=1)(state, 0.1)
    same([new.position, new.speed, report["energy"], report["at"][1]], [np.array([3.0, 3.0]), -3.0, 0.0, 1.0])
    by_state = cr.jacobian(step)(state, 0.1)
    assert type(by_state[0]) is State and type(by_state[0].position) is State
    same(by_state[0].position.position, np.eye(2))
    same(by_state[1]["energy"].speed, 3.0)


def test_second_derivatives_have_the_form_twice():
    f = lambda p: p["a"] ** 2 * np.sum(p["b"] ** 3)
    p = {"a": 2.0, "b": np.array([1.0, 2.0])}
    h = cr.hessian(f)(p)
    same([h["a"]["a"], h["a"]["b"], h["b"]["a"], h["b"]["b"]], [18.0, 12 * p["b"] ** 2, 12 * p["b"] ** 2, np.diag(24 * p["b"])])


def test_lists_of_arrays_keep_their_structure():
    f = lambda ws: sum(np.sum(w ** 2) for w in ws)
    ws = [np.ones(2), np.ones((3, 2)), np.array(2.0)]
    g = cr.gradient(f)(ws)
    assert type(g) is list and [np.shape(x) for x in g] == [(2,), (3, 2), ()]
    assert cr.gradient(lambda x: np.sum(x))([1.0, 2.0]).tolist() == [1.0, 1.0]


def test_a_batch_of_records():
    f = lambda p, x: p["w"] @ x + p["b"]
    p = {"w": rng.normal(size=(5, 3)), "b": rng.normal(size=5)}
    same(cr.vmap(f, in_axes=(0, None))(p, X[0]), p["w"] @ X[0] + p["b"])
    same(cr.vmap(f, in_axes=({"w": 0, "b": None}, None))({"w": p["w"], "b": 2.0}, X[0]), p["w"] @ X[0] + 2.0)
    g = cr.vmap(cr.gradient(f), in_axes=(0, None))(p, X[0])
    assert list(g) == ["w", "b"] and g["w"].shape == (5, 3)


def test_other_keys_or_classes_are_captured_again():
    f = cr.function(lambda p: sum(p.values()))
    assert f({"a": 1.0, "b": 2.0}) == 3.0 and f({"a": 1.0, "c": 5.0}) == 6.0 and f({"b": 1.0}) == 1.0


def test_saved_functions_take_records():
    f = cr.function(lambda p: {"v": p["a"] * 2, "n": p["b"].sum()})
    p = {"a": 1.5, "b": np.ones(3)}
    f(p)
    assert pickle.loads(pickle.dumps(f))(p) == {"v": 3.0, "n": 3.0}
    g = cr.function(lambda s: s.position * s.speed)
    g(State(np.ones(2), 3.0))
    same(pickle.loads(pickle.dumps(g))(State(np.ones(2), 3.0)), np.full(2, 3.0))


def test_arguments_are_not_changed():
    def f(p):
        p["a"] = p["a"] * 2
        return p["a"]

    with pytest.raises(cr.CaptureError, match="is an argument"):
        cr.function(f)({"a": 1.0})

    def g(p):
        p = {**p, "a": p["a"] * 2}
        q = dict(p)
        q["a"] += 1
        return p["a"] * q["a"]

    assert cr.function(g)({"a": 1.5, "b": 0.0}) == 12.0


def test_arrays_in_records_are_written():
    def f(s):
        s["x"][1:] += 1.0
        s["x"] *= 2.0

    x = np.zeros(3)
    cr.function(f)({"x": x})
    assert x.tolist() == [0.0, 2.0, 2.0]


def test_keywords_of_a_dict():
    def model(t, rate=1.0, scale=2.0):
        return scale * np.exp(-rate * t)

    f = lambda t, options: model(t, **options) + model(t)
    same(cr.function(f)(0.5, {"rate": 0.3}), f(0.5, {"rate": 0.3}))


@pytest.mark.parametrize("bad", [{"a": {1, 2}}, {"a": np.array(["x"])}, {"a": object}, {"a": b"x"}])
def test_parts_that_are_no_numbers(bad):
    with pytest.raises(cr.Error):
        cr.function(lambda p: p["a"] * 1.0)(bad)
