#include "study/python/binding/step_tables.h"

namespace memwall {

ColumnTable step_op_table(const Trace& trace) {
  ArrowColumn op = integers("op"), kind = texts("kind"), name = texts("name"), of = texts("operator"),
              module = texts("module"), phase = texts("phase"), duration = numbers("duration_s"),
              bytes = integers("bytes"), flops = numbers("flops");
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& o = trace.ops[id];
    op.add(static_cast<std::int64_t>(id));
    kind.add(to_string(o.kind));
    name.add(trace.strings[o.name]);
    of.add(trace.strings[o.operator_name]);
    module.add(trace.strings[o.module]);
    phase.add(to_string(o.phase));
    duration.add(to_seconds(o.duration));
    bytes.add(static_cast<std::int64_t>(o.bytes));
    flops.add(o.flops);
  }
  return {{std::move(op), std::move(kind), std::move(name), std::move(of), std::move(module), std::move(phase),
           std::move(duration), std::move(bytes), std::move(flops)}};
}

ColumnTable step_storage_table(const Trace& trace) {
  ArrowColumn storage = integers("storage"), bytes = integers("bytes"), kind = texts("kind"), label = texts("label"),
              preexisting = truths("preexisting");
  for (StorageId id = 0; id < trace.storages.size(); ++id) {
    const Storage& s = trace.storages[id];
    storage.add(static_cast<std::int64_t>(id));
    bytes.add(static_cast<std::int64_t>(s.bytes));
    kind.add(to_string(s.kind));
    label.add(trace.strings[s.label]);
    preexisting.add_bit(s.preexisting);
  }
  return {{std::move(storage), std::move(bytes), std::move(kind), std::move(label), std::move(preexisting)}};
}

ColumnTable step_use_table(const Trace& trace) {
  ArrowColumn op = integers("op"), storage = integers("storage"), writes = truths("writes");
  for (OpId id = 0; id < trace.ops.size(); ++id)
    for (const Use& use : trace.uses_of(trace.ops[id])) {
      op.add(static_cast<std::int64_t>(id));
      storage.add(static_cast<std::int64_t>(use.storage));
      writes.add_bit(use.access == Access::write);
    }
  return {{std::move(op), std::move(storage), std::move(writes)}};
}

}  // namespace memwall
