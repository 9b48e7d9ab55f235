#include "cli/print/device_memory_table.h"

#include <fmt/format.h>

#include "cli/print/table_cells.h"
#include "sim/human_text.h"

namespace memwall {

Table device_memory_table(const RunSummary& s) {
  Table t{.name = "device_memory",
          .title = "The GPU's memory in each of the statistics that are measured, at most",
          .columns = {"statistic", "bytes", "meaning"},
          .headings = {"statistic", "bytes", "what it is, and where the figure comes from"},
          .rows = {},
          .wrap = true};
  if (!s.device_memory || !s.memory_recorded) return t;
  const DeviceMemory& m = *s.device_memory;
  const auto row = [&](const char* name, Bytes bytes, std::string meaning) {
    t.rows.push_back({cell(name), bytes_cell(bytes), cell(std::move(meaning))});
  };
  row("allocated", m.allocated_in_all(), "torch.cuda.max_memory_allocated(): blocks in use, workspaces included");
  row("reserved", m.reserved_in_all(), "torch.cuda.max_memory_reserved(): with the allocator's cache");
  if (m.from_first_step > m.reserved)
    row("from the first step", m.from_first_step - m.reserved,
        "of reserved: the first step puts the optimizer's moments into cached blocks, which later steps need again");
  row("workspaces", m.workspaces,
      fmt::format("of these two: cuBLAS's, one for {} with products (PyTorch's default size)",
                  counted_text(m.product_streams, "stream")));
  row("context", m.context, "driver, context and loaded kernels: the machine file's `unavailable`");
  row("NCCL", m.communication,
      m.communicators == 0 ? std::string("no communicator of several ranks")
                           : fmt::format("buffers of {} of {} channels each; assumption, without trees",
                                         counted_text(m.communicators, "communicator"), m.channels));
  row("nvidia-smi", m.shown(), "reserved, context and NCCL: what it shows of this process");
  return t;
}

}  // namespace memwall
