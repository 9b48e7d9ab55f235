#include "tests/support/synthetic_snapshot.h"

#include <fstream>

namespace memwall {
namespace {

// PyTorch makes these texts anew for every entry.
Plain not_available() { return Plain::fresh_text("N/A"); }

}  // namespace

Plain snapshot_frame(const std::string& name, const std::string& file, int line) {
  return Plain::dict({{"name", name}, {"filename", file}, {"line", line}});
}

Plain snapshot_entry(const std::string& action, std::uint64_t address, std::int64_t size, const Plain& frames,
                     std::int64_t time_us, std::int64_t stream) {
  return Plain::dict({{"action", action},
                      {"addr", address},
                      {"size", size},
                      {"stream", stream},
                      {"time_us", time_us},
                      {"compile_context", not_available()},
                      {"user_metadata", Plain::fresh_text("")},
                      {"frames", frames}});
}

Plain snapshot_block(std::uint64_t address, std::int64_t size, std::int64_t requested, const std::string& state,
                     const Plain& frames) {
  return Plain::dict(
      {{"address", address}, {"size", size}, {"requested_size", requested}, {"state", state}, {"frames", frames}});
}

Plain snapshot_segment(std::uint64_t address, std::vector<Plain> blocks, int device, std::int64_t stream) {
  std::int64_t total = 0, allocated = 0, active = 0, requested = 0;
  for (Plain& block : blocks) {
    const std::int64_t size = block["size"].integer();
    const std::string state = block["state"].text();
    total += size;
    if (state == "active_allocated") allocated += size;
    if (state == "inactive") continue;
    active += size;
    requested += block["requested_size"].integer();
  }
  return Plain::dict({{"device", device},
                      {"address", address},
                      {"total_size", total},
                      {"allocated_size", allocated},
                      {"active_size", active},
                      {"requested_size", requested},
                      {"stream", stream},
                      {"segment_type", total == 2 << 20 ? "small" : "large"},
                      {"segment_pool_id", Plain::tuple({0, 0})},
                      {"is_expandable", false},
                      {"frames", Plain::list({})},
                      {"blocks", Plain::list(std::move(blocks))}});
}

Plain snapshot_settings(const std::string& text) {
  Plain::Pairs divisions;
  for (int mebibytes = 1; mebibytes <= 32768; mebibytes *= 2) divisions.emplace_back(std::to_string(mebibytes), 0);
  return Plain::dict({{"PYTORCH_CUDA_ALLOC_CONF", text},
                      {"max_split_size", -1},
                      {"garbage_collection_threshold", 0.0},
                      {"expandable_segments", false},
                      {"pinned_num_register_threads", 1},
                      {"release_lock_on_cudamalloc", false},
                      {"pinned_use_cuda_host_register", false},
                      {"roundup_power2_divisions", Plain::dict(std::move(divisions))}});
}

Plain snapshot_annotation(const std::string& stage, const std::string& name, std::int64_t time_us) {
  return Plain::dict({{"stage", stage}, {"name", name}, {"device", 0}, {"time_us", time_us}});
}

Plain snapshot_of(std::vector<Plain> segments, std::vector<Plain> traces, Plain settings) {
  return Plain::dict({{"segments", Plain::list(std::move(segments))},
                      {"device_traces", Plain::list(std::move(traces))},
                      {"allocator_settings", std::move(settings)},
                      {"external_annotations", Plain::list({})}});
}

Plain small_snapshot() {
  const Plain empty = snapshot_frame("at::native::empty_cuda", "??", 0);
  const Plain forward = snapshot_frame("forward", "model.py", 12);
  const Plain call = snapshot_frame("_call_impl", "module.py", 1750);
  const Plain main = snapshot_frame("main", "train.py", 40);
  const Plain one = Plain::list({empty, forward, call, call, main});
  const Plain two = Plain::list({empty, main});
  constexpr std::int64_t kTime = 1'700'000'000'000'000;
  constexpr std::uint64_t kSmall = 0x7f0000000000, kLarge = 0x7f0000200000;
  constexpr std::int64_t kMiB = 1 << 20;
  std::vector<Plain> trace = {snapshot_entry("segment_alloc", kSmall, 2 * kMiB, one, kTime),
                              snapshot_entry("alloc", kSmall, 1000, one, kTime + 1),
                              snapshot_entry("alloc", kSmall + 1024, 4096, two, kTime + 2),
                              snapshot_entry("segment_alloc", kLarge, 12 * kMiB, two, kTime + 3),
                              snapshot_entry("alloc", kLarge, 12 * kMiB - 100, two, kTime + 4),
                              snapshot_entry("free_requested", kSmall, 1000, two, kTime + 5),
                              snapshot_entry("free_completed", kSmall, 1000, two, kTime + 5)};
  return snapshot_of(
      {snapshot_segment(kSmall, {snapshot_block(kSmall, 1024, 1000, "inactive"),
                                 snapshot_block(kSmall + 1024, 4096, 4096, "active_allocated", two),
                                 snapshot_block(kSmall + 5120, 2 * kMiB - 5120, 0, "inactive")}),
       snapshot_segment(kLarge, {snapshot_block(kLarge, 12 * kMiB, 12 * kMiB - 100, "active_allocated", two)})},
      {Plain::list(std::move(trace))});
}

void write_large_snapshot(const std::filesystem::path& path, std::uint64_t bytes) {
  std::ofstream file(path, std::ios::binary);
  PickleWriter writer(
      4, [&](std::string_view text) { file.write(text.data(), static_cast<std::streamsize>(text.size())); });
  std::vector<Plain> frames;
  for (int i = 0; i < 600; ++i)
    frames.push_back(snapshot_frame("at::function_" + std::to_string(i) + "(at::Tensor const&, at::Tensor const&)",
                                    i % 3 != 0 ? "??" : "module_" + std::to_string(i) + ".py", i % 3 != 0 ? 0 : i));
  const auto stack = [&](std::uint64_t number) {
    std::vector<Plain> some;
    for (std::uint64_t k = 0; k < 48; ++k) some.push_back(frames[(7 * k + 13 * (number % 211)) % frames.size()]);
    return Plain::list(std::move(some));
  };
  writer.begin_dict();
  writer.open_batch();
  writer.write("segments");
  writer.write(Plain::list({}));
  writer.write("device_traces");
  writer.begin_list();
  writer.begin_list();
  std::uint64_t number = 0;
  for (std::int64_t time = 1'700'000'000'000'000; writer.written() < bytes;) {
    writer.open_batch();
    for (int i = 0; i < 500; ++i, ++number, time += 7) {  // an allocation, and its end
      const std::uint64_t address = 0x7f0000000000 + number % 4096 * 65536;
      const std::int64_t size = 512 + static_cast<std::int64_t>(number % 61) * 1000;
      // Each by itself, so that nobody else holds its list when it is written and the writer need not keep it.
      const Plain begin = snapshot_entry("alloc", address, size, stack(number), time);
      writer.write(begin);
      const Plain end = snapshot_entry("free_completed", address, size, stack(number + 1), time + 3);
      writer.write(end);
    }
    writer.close_list_batch();
  }
  writer.append();
  writer.write("allocator_settings");
  writer.write(snapshot_settings());
  writer.write("external_annotations");
  writer.write(Plain::list({}));
  writer.close_dict_batch();
  writer.finish();
}

}  // namespace memwall
