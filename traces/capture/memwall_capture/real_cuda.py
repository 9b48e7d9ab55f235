"""On a real CUDA device: the streams, events and waits of the program, told to the recorder."""

import contextlib

import torch


class Streams:
    """Numbers streams and events as they appear; the default stream is 0."""

    def __init__(self):
        self.numbers, self.events = {0: 0}, 0

    def number(self, stream):
        return self.numbers.setdefault(stream.cuda_stream, len(self.numbers))

    def current(self):
        return self.number(torch.cuda.current_stream())

    def new_event(self):
        self.events += 1
        return self.events - 1


@contextlib.contextmanager
def watched(recorder, streams):
    """What the program does with streams and events inside goes to the recorder, and to CUDA as before."""
    from torch.cuda.streams import Event, Stream
    with contextlib.ExitStack() as stack:
        def patch(owner, name, make):
            own = name in vars(owner)
            original = getattr(owner, name)
            setattr(owner, name, make(original))
            stack.callback(setattr, owner, name, original) if own else stack.callback(delattr, owner, name)

        def record(original):
            def record(event, stream=None):
                original(event, stream)
                event.memwall_number = streams.new_event()
                recorder.event("record", event.memwall_number, streams.number(stream or torch.cuda.current_stream()))
            return record

        def wait(original):
            def wait(event, stream=None):
                original(event, stream)
                number = getattr(event, "memwall_number", None)  # recorded before the step: over long ago
                if number is not None:
                    recorder.event("wait", number, streams.number(stream or torch.cuda.current_stream()))
            return wait

        def event_synchronize(original):
            def synchronize(event):
                original(event)
                number = getattr(event, "memwall_number", None)
                if number is not None:
                    recorder.synchronize("event", number=number)
            return synchronize

        def stream_synchronize(original):
            def synchronize(stream):
                original(stream)
                recorder.synchronize("stream", stream=streams.number(stream))
            return synchronize

        def device_synchronize(original):
            def synchronize(device=None):
                original(device)
                recorder.synchronize("device")
            return synchronize

        def record_stream(original):
            def record_stream(tensor, stream):
                original(tensor, stream)
                recorder.storages.used_on(tensor, streams.number(stream))
            return record_stream

        patch(torch.Tensor, "record_stream", record_stream)
        patch(Event, "record", record)
        patch(Event, "wait", wait)
        patch(Event, "synchronize", event_synchronize)
        patch(Stream, "synchronize", stream_synchronize)
        patch(torch.cuda, "synchronize", device_synchronize)
        yield
