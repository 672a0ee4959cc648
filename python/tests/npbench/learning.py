"""Neural networks."""

import numpy as np

from . import Program


def relu(x):
    return np.maximum(x, 0)


def softmax(x):
    top = np.max(x, axis=-1, keepdims=True)
    out = np.exp(x - top)
    total = np.sum(out, axis=-1, keepdims=True)
    return out / total


def mlp(input, w1, b1, w2, b2, w3, b3):
    x = relu(input @ w1 + b1)
    x = relu(x @ w2 + b2)
    x = softmax(x @ w3 + b3)
    return x


def conv2d(input, weights):
    K = weights.shape[0]
    N = input.shape[0]
    H_out = input.shape[1] - K + 1
    W_out = input.shape[2] - K + 1
    C_out = weights.shape[3]
    output = np.empty((N, H_out, W_out, C_out), dtype=np.float64)
    for i in range(H_out):
        for j in range(W_out):
            output[:, i, j, :] = np.sum(
                input[:, i:i + K, j:j + K, :, np.newaxis] * weights[np.newaxis, :, :, :], axis=(1, 2, 3))
    return output


def conv2d_bias(input, weights, bias):
    return conv2d(input, weights) + bias


def maxpool2d(x):
    output = np.empty([x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]], dtype=x.dtype)
    for i in range(x.shape[1] // 2):
        for j in range(x.shape[2] // 2):
            output[:, i, j, :] = np.max(x[:, 2 * i:2 * i + 2, 2 * j:2 * j + 2, :], axis=(1, 2))
    return output


def lenet(input, conv1, conv1bias, conv2, conv2bias, fc1w, fc1b, fc2w, fc2b, fc3w, fc3b, N, C_before_fc1):
    x = relu(conv2d(input, conv1) + conv1bias)
    x = maxpool2d(x)
    x = relu(conv2d(x, conv2) + conv2bias)
    x = maxpool2d(x)
    x = np.reshape(x, (N, C_before_fc1))
    x = relu(x @ fc1w + fc1b)
    x = relu(x @ fc2w + fc2b)
    return x @ fc3w + fc3b


def batchnorm2d(x, eps=1e-5):
    mean = np.mean(x, axis=0, keepdims=True)
    std = np.std(x, axis=0, keepdims=True)
    return (x - mean) / np.sqrt(std + eps)


def resnet(input, conv1, conv2, conv3):
    padded = np.zeros((input.shape[0], input.shape[1] + 2, input.shape[2] + 2, conv1.shape[3]))
    padded[:, 1:-1, 1:-1, :] = conv2d(input, conv1)
    x = batchnorm2d(padded)
    x = relu(x)
    x = conv2d(x, conv2)
    x = batchnorm2d(x)
    x = relu(x)
    x = conv2d(x, conv3)
    x = batchnorm2d(x)
    return relu(x + input)


def lenet_arguments(r, n, h, w):
    before = 16 * (((h - 4) // 2 - 4) // 2) * (((w - 4) // 2 - 4) // 2)
    d = lambda *shape: r.normal(size=shape) * 0.3
    return (r.random((n, h, w, 1)), d(5, 5, 1, 6), d(6), d(5, 5, 6, 16), d(16), d(before, 12), d(12), d(12, 8), d(8), d(8, 5), d(5),
            n, before)


def mlp_arguments(r, c, n, s0, s1, s2):
    d = lambda *shape: r.normal(size=shape)
    return d(n, c), d(c, s0), d(s0), d(s0, s1), d(s1), d(s1, s2), d(s2)


PROGRAMS = [
    Program(softmax, lambda r, n, h, m: (r.normal(size=(n, h, m, m)),), (2, 3, 4), (16, 16, 128)),
    Program(mlp, mlp_arguments, (3, 4, 5, 4, 3), (3, 8, 30000, 2000, 2000)),
    Program(conv2d_bias, lambda r, n, h, k, c, d: (r.random((n, h, h, c)), r.normal(size=(k, k, c, d)), r.normal(size=d)),
            (2, 5, 3, 2, 3), (8, 32, 3, 3, 16)),
    Program(lenet, lenet_arguments, (2, 16, 16), (4, 28, 28)),
    Program(resnet, lambda r, n, w, c1, c2: (r.random((n, w, w, c1)), r.normal(size=(1, 1, c1, c2)), r.normal(size=(3, 3, c2, c2)),
                                             r.normal(size=(1, 1, c2, c1))), (3, 4, 2, 3), (8, 14, 32, 8)),
]
