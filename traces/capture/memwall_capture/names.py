"""Where in the model an operator runs: the qualified name of the innermost module whose forward is being called."""

import torch

from .compiled import plain_name


class ModuleNames:
    def __init__(self, model=None):
        self.stack = []
        self.names = {}
        self.modules = []  # keeps them alive, so that an id stays theirs
        self.handles = []
        self.on_enter = None
        if model is not None:
            self.learn(model)

    def learn(self, root):
        for name, module in root.named_modules(remove_duplicate=True):
            if id(module) not in self.names:
                self.names[id(module)] = plain_name(name)
                self.modules.append(module)

    def __enter__(self):
        hooks = torch.nn.modules.module
        self.handles = [hooks.register_module_forward_pre_hook(self._enter),
                        hooks.register_module_forward_hook(self._leave, always_call=True)]
        return self

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()

    def _enter(self, module, _inputs):
        if id(module) not in self.names:
            if not self.stack:
                self.learn(module)
            else:
                self.names[id(module)] = self.stack[-1]
                self.modules.append(module)
        self.stack.append(self.names[id(module)])
        if self.on_enter is not None:
            self.on_enter()

    def _leave(self, _module, _inputs, _outputs):
        if self.stack:
            self.stack.pop()

    @property
    def path(self):
        return self.stack[-1] if self.stack else ""
