"""Tensors of which it is noticed that Python reads or sets `grad` and `data`: their class becomes a subclass that differs in
these two only. Autograd does not go through them."""

import torch

GRAD, DATA = torch.Tensor.grad, torch.Tensor.data


def watched(base, owner):
    """A subclass of `base`, the class of a tensor. Asked are `owner.read_grad(tensor)`, `write_grad(tensor, value)`,
    `read_data(tensor)` and `write_data(tensor, value)`."""
    def grad(tensor):
        return owner.read_grad(tensor)

    def set_grad(tensor, value):
        owner.write_grad(tensor, value)

    def forget_grad(tensor):
        owner.write_grad(tensor, None)

    def data(tensor):
        return owner.read_data(tensor)

    def set_data(tensor, value):
        owner.write_data(tensor, value)

    members = {"grad": property(grad, set_grad, forget_grad), "data": property(data, set_data), "__module__": base.__module__,
               "watches": base}
    return type(base)(base.__name__, (base,), members)


def watch(tensors, owner):
    classes = {}
    for tensor in tensors:
        base = type(tensor)
        if base not in classes:
            classes[base] = watched(base, owner)
        tensor.__class__ = classes[base]


def unwatch(tensors):
    for tensor in tensors:
        tensor.__class__ = type(tensor).watches


def grad_of(tensor):
    return GRAD.__get__(tensor)


def set_grad(tensor, gradient):
    GRAD.__set__(tensor, gradient)
