#include "tests/support/inject_writer.h"

#include <cctype>
#include <cmath>

#include "models/workload/import/timed/kernel_properties.h"
#include "tests/support/scratch_folder.h"

namespace memwall {

InjectWriter::InjectWriter() {
  bytes_ = "\x89MWI\r\n\x1a\n";
  for (const std::uint64_t field : {0x01020304ull, 1ull, 32ull, 0ull}) put(field, 4);
  put(1'700'000'000'000'000'000ull, 8);
}

void InjectWriter::put(std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
}

std::uint32_t InjectWriter::name(std::string_view text) {
  if (text.empty()) return 0;
  const auto known = names_.find(text);
  if (known != names_.end()) return known->second;
  const auto id = static_cast<std::uint32_t>(names_.size() + 1);
  names_.emplace(text, id);
  record(1, {}, {id, text.size()}, text);
  return id;
}

void InjectWriter::record(std::uint16_t kind, std::initializer_list<std::uint64_t> wide,
                          std::initializer_list<std::uint64_t> narrow, std::string_view rest) {
  const std::size_t size = 8 + 8 * wide.size() + 4 * narrow.size() + rest.size(), whole = (size + 7) / 8 * 8;
  put(kind, 2);
  put(0, 2);
  put(whole, 4);
  for (const std::uint64_t field : wide) put(field, 8);
  for (const std::uint64_t field : narrow) put(field, 4);
  bytes_ += rest;
  bytes_.append(whole - size, '\0');
}

void InjectWriter::process(std::uint32_t id, std::string_view command) {
  const std::uint32_t text = name(command);
  record(2, {}, {id, text, text, 13000, 12080, 130001, 130001, 1});
}

void InjectWriter::device(std::uint32_t id, std::string_view device, std::uint64_t memory,
                          std::uint32_t multiprocessors) {
  const std::uint32_t text = name(device);
  record(4, {memory, 2'000'000'000'000ull},
         {id, text, multiprocessors, 64, 32, 32, 65536, 233472, 52428800, 3, 9, 0, 0, 0, 0, 0});
}

void InjectWriter::context(std::uint32_t id, std::uint32_t device) { record(5, {}, {id, device, 7, 0}); }

void InjectWriter::kernel(const WrittenKernel& k) {
  const std::uint32_t text = name(k.name);
  record(7, {k.start, k.end, 0},
         {k.device, k.context, k.stream, k.correlation, text, k.graph, k.blocks, 1, 1, k.threads, 1, 1, k.registers,
          k.shared_memory, 0, 0});
}

void InjectWriter::copy(const WrittenCopy& c) {
  const std::string kinds = {static_cast<char>(c.kind), static_cast<char>(c.source), static_cast<char>(c.destination),
                             '\1'};
  record(8, {c.start, c.end, c.bytes, 0}, {c.device, c.context, c.stream, c.correlation, 0xffffffff, 0xffffffff, 0},
         kinds);
}

void InjectWriter::memset(const WrittenCopy& m) {
  const std::string kinds = {static_cast<char>(m.destination), '\0', '\1', '\0'};
  record(9, {m.start, m.end, m.bytes, 0}, {m.device, m.context, m.stream, m.correlation, 0, 0},
         kinds + std::string(4, '\0'));
}

void InjectWriter::call(const WrittenCall& c) {
  const std::uint32_t text = name(c.name);
  record(15, {c.start, c.end}, {c.domain, c.callback, text, c.thread, c.correlation, 0});
}

void InjectWriter::range(std::string_view text, std::uint64_t start, std::uint64_t end, std::uint32_t thread,
                         std::uint32_t end_thread) {
  const std::uint32_t id = ++markers_, number = name(text);
  record(16, {start}, {id, 2, number, 0, thread, 0});
  record(16, {end}, {id, 4, 0, 0, end_thread == 0 ? thread : end_thread, 0});
}

void InjectWriter::synchronization(std::uint32_t type, std::uint64_t start, std::uint64_t end,
                                   std::uint32_t correlation, std::uint32_t stream, std::uint64_t event_sync,
                                   std::uint32_t event, std::uint32_t context) {
  record(10, {start, end, event_sync}, {type, correlation, context, stream, event, 0});
}

void InjectWriter::event(std::uint64_t event_sync, std::uint32_t correlation, std::uint32_t stream, std::uint32_t event,
                         std::uint32_t context) {
  record(11, {event_sync}, {correlation, context, stream, event});
}

void InjectWriter::memory(std::uint32_t operation, std::uint64_t time, std::uint64_t address, std::uint64_t size,
                          std::uint32_t correlation, std::uint32_t kind, std::uint64_t pool) {
  record(12, {time, address, size, pool}, {operation, kind, correlation, 0, 1, 7, 0, 0});
}

void InjectWriter::end(std::uint64_t dropped, std::uint64_t refused_buffers, std::uint64_t over_limit) {
  record(22, {1, dropped, refused_buffers, over_limit, 0, 0}, {});
}

void InjectWriter::save(const std::filesystem::path& path) const { write_content(path, bytes_); }

namespace {

class Converter {
 public:
  explicit Converter(const TimedCapture& capture) : c_(capture) {}

  InjectWriter run() {
    w_.process(1, "converted");
    for (const CapturedDevice& device : c_.devices) add_device(device);
    for (const CapturedCall& call : c_.calls)
      w_.call({.name = c_.text(call.name),
               .start = at(call.start),
               .end = at(call.end()),
               .correlation = static_cast<std::uint32_t>(std::max<std::int64_t>(call.correlation, 0)),
               .thread = thread(call.thread),
               .callback = static_cast<std::uint32_t>(std::max<std::int64_t>(call.callback, 0))});
    for (const CapturedDeviceOp& op : c_.device_ops) add_device_op(op);
    for (const CapturedSync& sync : c_.syncs) add_sync(sync);
    for (const CapturedOperator& op : c_.operators) add_operator(op);
    for (const CapturedModule& module : c_.modules)
      w_.range("nn.Module: " + c_.text(module.name), at(module.start), at(module.end()), thread(module.thread));
    w_.end();
    return std::move(w_);
  }

 private:
  // Behind 0, which stands for a time that is not known.
  static std::uint64_t at(Time time) { return 1'000'000'000 + static_cast<std::uint64_t>(time.count() / 1000); }
  static std::uint32_t thread(std::uint16_t index) { return 1000u + index; }
  static std::uint32_t context(std::int32_t device) { return static_cast<std::uint32_t>(device) + 1; }

  void add_device(const CapturedDevice& device) {
    const auto id = static_cast<std::uint32_t>(device.id);
    w_.device(id, device.name, static_cast<std::uint64_t>(device.memory), device.multiprocessors);
    w_.context(context(static_cast<std::int32_t>(device.id)), id);
  }

  std::uint32_t multiprocessors(std::int32_t id) const {
    for (const CapturedDevice& device : c_.devices)
      if (device.id == id) return device.multiprocessors;
    return 0;
  }

  static std::uint8_t memory_kind(std::string_view name, std::string_view before, std::string_view after) {
    const std::size_t from = name.find(before) + before.size();
    const std::string_view text = name.substr(from, name.find(after, from) - from);
    constexpr std::string_view names[] = {"Unknown", "Pageable", "Pinned", "Device", "Array", "Managed"};
    for (std::uint8_t i = 0; i < std::size(names); ++i)
      if (names[i] == text) return i;
    return 0;
  }

  void add_device_op(const CapturedDeviceOp& op) {
    const std::string& name = c_.text(op.name);
    if (op.work == DeviceWork::kernel) {
      const CapturedLaunch& launch = c_.launches[op.launch];
      w_.kernel({.name = name,
                 .start = at(op.start),
                 .end = at(op.end()),
                 .correlation = static_cast<std::uint32_t>(std::max<std::int64_t>(op.correlation, 0)),
                 .stream = static_cast<std::uint32_t>(op.stream),
                 .device = static_cast<std::uint32_t>(op.device),
                 .context = context(op.device),
                 .blocks = static_cast<std::uint32_t>(
                     std::lround(launch.blocks_per_multiprocessor * multiprocessors(op.device))),
                 .threads = launch.threads_per_block,
                 .registers = launch.registers_per_thread,
                 .shared_memory = launch.shared_memory});
      return;
    }
    WrittenCopy copy{.start = at(op.start),
                     .end = at(op.end()),
                     .bytes = static_cast<std::uint64_t>(std::max<Bytes>(op.bytes, 0)),
                     .correlation = static_cast<std::uint32_t>(std::max<std::int64_t>(op.correlation, 0)),
                     .stream = static_cast<std::uint32_t>(op.stream),
                     .device = static_cast<std::uint32_t>(op.device),
                     .context = context(op.device)};
    if (op.work == DeviceWork::memset) {
      copy.destination = memory_kind(name, "(", ")");
      w_.memset(copy);
      return;
    }
    const CopyDirection direction = copy_direction(name);
    copy.kind = direction.from_host && direction.to_host ? 9
                : direction.from_host                    ? 1
                : direction.to_host                      ? 2
                : direction.between_devices              ? 10
                                                         : 8;
    copy.source = memory_kind(name, "(", " ->");
    copy.destination = memory_kind(name, "-> ", ")");
    w_.copy(copy);
  }

  void add_sync(const CapturedSync& sync) {
    const std::uint32_t type = sync.kind == SyncKind::event               ? 1
                               : sync.kind == SyncKind::stream_wait_event ? 2
                               : sync.kind == SyncKind::stream            ? 3
                                                                          : 4;
    std::uint64_t record = 0;
    if (sync.record_correlation > 0) {
      record = ++events_;
      w_.event(record, static_cast<std::uint32_t>(sync.record_correlation),
               static_cast<std::uint32_t>(sync.awaited_stream), 1, context(sync.device));
    }
    w_.synchronization(type, at(sync.start), at(sync.start + sync.duration),
                       static_cast<std::uint32_t>(std::max<std::int64_t>(sync.correlation, 0)),
                       static_cast<std::uint32_t>(sync.stream), record, 1, context(sync.device));
  }

  void add_operator(const CapturedOperator& op) {
    std::string name = c_.text(op.name);
    if (!op.annotation) {
      name += op.sequence_number >= 0 ? ", seq = " + std::to_string(op.sequence_number) : ", op_id = 1";
      if (op.input_dims != 0) name += ", sizes = " + c_.text(op.input_dims);
    }
    w_.range(name, at(op.start), at(op.end()), thread(op.thread));
  }

  const TimedCapture& c_;
  InjectWriter w_;
  std::uint64_t events_ = 0;
};

}  // namespace

InjectWriter as_injected(const TimedCapture& capture) { return Converter(capture).run(); }

}  // namespace memwall
