// Does the host back end do what a GPU does: order within streams, events across them, engines, memory? And
// does its check of contents see what goes wrong? Times are only bounded from below: this computer is shared.
#include "validate/replay/host_backend.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "sim/error.h"
#include "sim/trace/trace_builder.h"
#include "validate/replay/host_content.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::uint16_t kCompute = 0, kIn = 1, kOut = 2, kStorage = 3;
constexpr double kRate = 2e8;

HostBackendSettings small_settings() {
  HostBackendSettings settings;
  settings.device_capacity = MiB(32);
  settings.host_to_device = settings.device_to_host = settings.within_device = kRate;
  settings.scratch = ::testing::TempDir();
  settings.file_bytes = MiB(16);
  return settings;
}

// Four streams, `ops` op numbers, `events` events.
Trace empty_schedule(std::size_t ops = 64, std::uint32_t events = 4) {
  TraceBuilder builder;
  builder.add_stream("compute", StreamRole::compute);
  builder.add_stream("in", StreamRole::copy);
  builder.add_stream("out", StreamRole::copy);
  builder.add_stream("storage", StreamRole::storage);
  builder.trace().ops.resize(ops);
  builder.trace().event_count = events;
  return std::move(builder).finish();
}

class HostBackendTest : public ::testing::Test {
 protected:
  void prepare(bool checked) {
    backend_->prepare(schedule_, checked);
    backend_->start_clock();
  }
  Buffer device(Bytes bytes) {
    const auto address = backend_->device_memory().obtain(bytes);
    EXPECT_TRUE(address.has_value());
    return {PlaceClass::device, reinterpret_cast<void*>(*address), 0, bytes};
  }
  OpTimes times(OpId id) {
    std::vector<OpTimes> all;
    backend_->device_times(all);
    return all.at(id);
  }
  static KernelWork kernel_of(double flops, Bytes bytes = 0) {
    return {OperatorClass::elementwise, DataType::fp32, flops, bytes};
  }

  Trace schedule_ = empty_schedule();
  std::unique_ptr<Backend> backend_ = make_host_backend(small_settings());
};

TEST_F(HostBackendTest, WorkOfAStreamRunsInOrder) {
  prepare(false);
  const Buffer from = backend_->allocate_host(KiB(64), true), to = device(KiB(64));
  backend_->kernel(0, kCompute, kernel_of(2e7), {});
  backend_->copy(1, kCompute, {from}, {to}, KiB(64));
  backend_->memset(2, kCompute, {to}, KiB(64));
  backend_->kernel(3, kCompute, kernel_of(1e6, MiB(1)), {});
  backend_->synchronize_stream(kCompute);
  const Time done = backend_->now();
  for (OpId id = 0; id < 4; ++id) EXPECT_LE(times(id).start, times(id).end) << id;
  for (OpId id = 1; id < 4; ++id) EXPECT_GE(times(id).start, times(id - 1).end) << id;
  EXPECT_GT(times(0).end - times(0).start, Duration{0});
  EXPECT_LE(times(3).end, done);
  EXPECT_EQ(times(4).start, kNever) << "an op that was never submitted has no device part";
}

TEST_F(HostBackendTest, AWaitHoldsTheOtherStreamBack) {
  prepare(false);
  backend_->kernel(0, kCompute, kernel_of(1e8), {});
  backend_->record(0, kCompute);
  backend_->wait(0, kIn);
  backend_->kernel(1, kIn, kernel_of(1e3), {});
  backend_->synchronize_device();
  EXPECT_GE(times(1).start, times(0).end);
}

TEST_F(HostBackendTest, AnEventNeverRecordedIsNoBound) {
  prepare(false);
  backend_->wait(2, kIn);
  backend_->kernel(0, kIn, kernel_of(1e3), {});
  backend_->synchronize_event(2);
  backend_->synchronize_device();
  EXPECT_NE(times(0).end, kNever);
}

// The wait means the first record, although the event is recorded again before the waiting stream gets there: a
// second record that comes only after that stream has gone on. If the wait meant it, nothing would ever end.
TEST_F(HostBackendTest, AWaitMeansTheRecordBeforeItsCall) {
  prepare(false);
  backend_->kernel(0, kCompute, kernel_of(2e7), {});
  backend_->record(0, kCompute);
  backend_->wait(0, kOut);
  backend_->kernel(1, kOut, kernel_of(1e3), {});
  backend_->record(1, kOut);
  backend_->wait(1, kCompute);
  backend_->kernel(2, kCompute, kernel_of(1e6), {});
  backend_->record(0, kCompute);
  backend_->synchronize_event(0);
  const Time second = backend_->now();
  EXPECT_GE(times(1).start, times(0).end);
  EXPECT_GE(times(2).start, times(1).end);
  EXPECT_GE(second, times(2).end) << "synchronize_event means the latest record";
}

TEST_F(HostBackendTest, ACopyBringsItsBytesAndIsNeverFasterThanItsPace) {
  prepare(false);
  for (const Bytes bytes : {Bytes{1}, Bytes{4099}, KiB(256), MiB(3) + 17}) {
    const Buffer from = backend_->allocate_host(bytes, true), to = device(bytes);
    const Buffer back = backend_->allocate_host(bytes, false);
    fill_pattern(from.data, bytes, 7);
    backend_->copy(0, kIn, {from}, {to}, bytes);
    backend_->record(0, kIn);
    backend_->wait(0, kOut);
    backend_->copy(1, kOut, {to}, {back}, bytes);
    backend_->synchronize_device();
    EXPECT_EQ(std::memcmp(from.data, back.data, static_cast<std::size_t>(bytes)), 0) << bytes;
    const auto least = [&](double rate) { return from_seconds(static_cast<double>(bytes) / rate) + microseconds(20); };
    // Times have whole nanoseconds.
    EXPECT_GE(times(0).end - times(0).start + nanoseconds(1), least(kRate)) << bytes;
    EXPECT_GE(times(1).end - times(1).start + nanoseconds(1), least(kRate / 2)) << "pageable memory has half the rate";
    backend_->free_host(from);
    backend_->free_host(back);
    backend_->device_memory().give_back(reinterpret_cast<Address>(to.data), bytes);
  }
}

TEST_F(HostBackendTest, CopiesOfOneDirectionRunOneAfterAnother) {
  prepare(false);
  const Buffer from = backend_->allocate_host(MiB(1), true), to = device(MiB(1));
  for (OpId id = 0; id < 9; ++id) backend_->copy(id, static_cast<std::uint16_t>(id % 3), {from}, {to}, KiB(512));
  backend_->synchronize_device();
  std::vector<OpTimes> all;
  backend_->device_times(all);
  all.resize(9);
  std::sort(all.begin(), all.end(), [](const OpTimes& a, const OpTimes& b) { return a.start < b.start; });
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i].start, all[i - 1].end) << i;
}

TEST_F(HostBackendTest, CopiesWithinTheDeviceMoveBytesToo) {
  prepare(true);
  const Buffer a = device(100'001), b = device(100'001);
  backend_->fill(a, 5);
  backend_->copy(0, kCompute, {a, 5, 0}, {b, 0, 5}, 100'001);
  backend_->kernel(1, kCompute, kernel_of(0), std::vector<Operand>{{b, 5, 0}});
  backend_->synchronize_device();
  EXPECT_EQ(backend_->integrity().first_mismatch, "");
  EXPECT_EQ(backend_->integrity().checks, 3u) << "before the copy, after it, and by the kernel";
  EXPECT_GE(times(0).end - times(0).start + nanoseconds(1), from_seconds(100'001 / kRate) + microseconds(20));
}

TEST_F(HostBackendTest, ARoundTripThroughHostAndFileKeepsEveryByte) {
  prepare(true);
  const Bytes bytes = MiB(2) + 4097;
  const Buffer a = device(bytes), b = device(bytes);
  const Buffer staging = backend_->allocate_host(bytes, true), other = backend_->allocate_host(bytes, true);
  const Buffer file = backend_->allocate_file(bytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(staging.data) % 4096, 0u);
  EXPECT_EQ(file.offset % 4096, 0u);
  backend_->kernel(0, kCompute, kernel_of(1e4, MiB(1)), std::vector<Operand>{{a, 0, 11}});
  backend_->record(0, kCompute);
  backend_->wait(0, kOut);
  backend_->copy(1, kOut, {a, 11, 0}, {staging, 0, 11}, bytes);
  backend_->record(1, kOut);
  backend_->wait(1, kStorage);
  backend_->storage_io(2, kStorage, {staging, 11, 0}, {file, 0, 11}, bytes);
  backend_->storage_io(3, kStorage, {file, 11, 0}, {other, 0, 11}, bytes);
  backend_->record(2, kStorage);
  backend_->wait(2, kIn);
  backend_->copy(4, kIn, {other, 11, 0}, {b, 0, 11}, bytes);
  backend_->record(3, kIn);
  backend_->wait(3, kCompute);
  backend_->kernel(5, kCompute, kernel_of(1e4, MiB(1)), std::vector<Operand>{{b, 11, 12}});
  backend_->kernel(6, kCompute, kernel_of(1e4, MiB(1)), std::vector<Operand>{{b, 12, 0}});
  backend_->synchronize_device();
  EXPECT_EQ(backend_->integrity().first_mismatch, "");
  EXPECT_EQ(backend_->integrity().mismatches, 0u);
  EXPECT_GE(backend_->integrity().checks, 8u);
  EXPECT_GE(times(3).start, times(2).end);
}

// As a bound, which holds on a busy computer too: real I/O may be slower, a paced transfer is never faster.
TEST_F(HostBackendTest, TransfersOfTheFileAreNeverFasterThanTheirPace) {
  prepare(false);
  const Bytes bytes = MiB(8);
  const Buffer file = backend_->allocate_file(bytes), memory = backend_->allocate_host(bytes, true);
  backend_->fill(memory, 7);
  backend_->storage_io(0, kStorage, {memory, 1, 0}, {file, 0, 1}, bytes);
  backend_->storage_io(1, kStorage, {file, 1, 0}, {memory, 0, 1}, bytes);
  backend_->synchronize_device();
  const Duration least = from_seconds(static_cast<double>(bytes) / HostBackendSettings{}.file_read);
  for (const OpId id : {0, 1}) EXPECT_GE(times(id).end - times(id).start, least) << id;
}

TEST_F(HostBackendTest, TheFileCanBeFilledBeforeThePass) {
  prepare(true);
  const Bytes bytes = MiB(9) + 3;
  const Buffer file = backend_->allocate_file(bytes), memory = backend_->allocate_host(bytes, true);
  backend_->fill(file, 99);
  backend_->storage_io(0, kStorage, {file, 99, 0}, {memory, 0, 99}, bytes);
  backend_->synchronize_stream(kStorage);
  EXPECT_EQ(backend_->integrity().mismatches, 0u);
  EXPECT_EQ(backend_->integrity().checks, 1u);
  EXPECT_EQ(compare_pattern(memory.data, bytes, 99).words, 0u);
}

TEST_F(HostBackendTest, ACopyFromTheWrongBufferIsSeen) {
  prepare(true);
  const Buffer right = device(MiB(1)), wrong = device(MiB(1)), to = backend_->allocate_host(MiB(1), true);
  backend_->fill(right, 1);
  backend_->fill(wrong, 2);
  backend_->copy(3, kOut, {wrong, 1, 0}, {to, 0, 1}, MiB(1));
  backend_->synchronize_device();
  EXPECT_EQ(backend_->integrity().mismatches, 2u) << "when it leaves, and when it has arrived";
  EXPECT_EQ(backend_->integrity().first_mismatch.rfind("op 3 ", 0), 0u) << backend_->integrity().first_mismatch;
}

TEST_F(HostBackendTest, OneFlippedBitIsSeen) {
  prepare(true);
  const Buffer buffer = device(100'003);
  for (const Bytes at : {Bytes{0}, Bytes{50'000}, Bytes{100'002}}) {
    backend_->fill(buffer, 4);
    static_cast<unsigned char*>(buffer.data)[at] ^= 0x10;
    const std::uint64_t before = backend_->integrity().mismatches;
    backend_->kernel(9, kCompute, kernel_of(0), std::vector<Operand>{{buffer, 4, 0}});
    backend_->synchronize_device();
    EXPECT_EQ(backend_->integrity().mismatches, before + 1) << at;
    EXPECT_EQ(compare_pattern(buffer.data, buffer.bytes, 4).first, at / 8 * 8);
  }
}

// The wait is missing, and the reader runs before the writer: made certain by the order of submission.
TEST_F(HostBackendTest, AReaderBeforeItsWriterIsSeen) {
  prepare(true);
  const Buffer buffer = device(MiB(1));
  backend_->fill(buffer, 1);
  backend_->kernel(0, kIn, kernel_of(1e3), std::vector<Operand>{{buffer, 2, 0}});
  backend_->synchronize_stream(kIn);
  backend_->kernel(1, kCompute, kernel_of(1e3), std::vector<Operand>{{buffer, 0, 2}});
  backend_->synchronize_device();
  EXPECT_EQ(backend_->integrity().mismatches, 1u);
  EXPECT_EQ(backend_->integrity().first_mismatch.rfind("op 0 reads ", 0), 0u);
}

TEST_F(HostBackendTest, ATimedPassDoesNotCompare) {
  prepare(false);
  const Buffer buffer = device(MiB(1));
  backend_->kernel(0, kCompute, kernel_of(1e3), std::vector<Operand>{{buffer, 2, 3}});
  backend_->synchronize_device();
  EXPECT_EQ(backend_->integrity().checks, 0u);
}

TEST_F(HostBackendTest, KernelsWriteWhatTheyMakeAndNothingElse) {
  const Buffer input = device(MiB(1)), output = device(MiB(1)), bystander = device(MiB(1));
  for (const bool checked : {true, false}) {
    prepare(checked);
    for (const Buffer& buffer : {input, output, bystander}) backend_->fill(buffer, 6);
    backend_->kernel(0, kCompute, kernel_of(1e6, MiB(6)), std::vector<Operand>{{input, 6, 0}, {output, 0, 7}});
    backend_->synchronize_device();
    EXPECT_EQ(compare_pattern(input.data, MiB(1), 6).words, 0u);
    EXPECT_EQ(compare_pattern(bystander.data, MiB(1), 6).words, 0u);
    if (checked) {
      EXPECT_EQ(compare_pattern(output.data, MiB(1), 7).words, 0u);
    }
  }
}

TEST_F(HostBackendTest, HostWorkChecksAndMakesContents) {
  prepare(true);
  const Buffer state = backend_->allocate_host(KiB(300), true);
  backend_->fill(state, 21);
  backend_->host_work(0, MiB(2), std::vector<Operand>{{state, 21, 22}});
  EXPECT_EQ(backend_->integrity().mismatches, 0u);
  EXPECT_EQ(compare_pattern(state.data, state.bytes, 22).words, 0u);
  backend_->host_work(1, MiB(2), std::vector<Operand>{{state, 21, 23}});
  EXPECT_EQ(backend_->integrity().mismatches, 1u);
}

TEST_F(HostBackendTest, MemoryHasItsCapacity) {
  EXPECT_EQ(backend_->device_capacity(), MiB(32));
  EXPECT_FALSE(backend_->device_memory().obtain(MiB(32) + 1).has_value());
  const Buffer all = backend_->allocate_file(MiB(16));
  EXPECT_THROW(backend_->allocate_file(1), std::bad_alloc);
  backend_->free_file(all);
  EXPECT_NO_THROW(backend_->free_file(backend_->allocate_file(MiB(16))));
  EXPECT_THROW(backend_->allocate_host(Bytes{1} << 46, true), std::bad_alloc);
}

TEST_F(HostBackendTest, WhatItCannotDoIsRefused) {
  prepare(false);
  const Buffer memory = device(4096), file = backend_->allocate_file(4096), host = backend_->allocate_host(4096, true);
  EXPECT_THROW(backend_->storage_io(0, kStorage, {memory}, {file}, 4096), UsageError);
  EXPECT_THROW(backend_->storage_io(0, kStorage, {host}, {host}, 4096), UsageError);
  EXPECT_THROW(backend_->copy(0, kIn, {file}, {memory}, 4096), UsageError);
  EXPECT_THROW(backend_->copy(0, kIn, {host}, {memory}, 4097), UsageError);
}

TEST_F(HostBackendTest, AStreamThatFailsIsReportedOnceAndGoesOn) {
  prepare(false);
  const Buffer host = backend_->allocate_host(4096, true);
  Buffer beyond = backend_->allocate_file(4096);
  beyond.offset = static_cast<std::uint64_t>(MiB(64));  // behind the end of the file
  backend_->storage_io(0, kStorage, {beyond}, {host}, 4096);
  backend_->kernel(1, kStorage, kernel_of(1e3), {});
  EXPECT_THROW(backend_->synchronize_stream(kStorage), std::runtime_error);
  EXPECT_NO_THROW(backend_->synchronize_device());
  EXPECT_NE(times(1).end, kNever);
}

TEST_F(HostBackendTest, StandAloneTimesGrowWithTheWork) {
  const Duration small = backend_->kernel_alone(kernel_of(1e6)), large = backend_->kernel_alone(kernel_of(1e9));
  EXPECT_GT(small, Duration{0});
  EXPECT_GT(large, 5 * small) << "1000 times the FLOPs";
  EXPECT_GT(backend_->host_work_alone(MiB(64)), backend_->host_work_alone(KiB(64)));
}

// The fastest of many in a stream against the median alone: what else runs only makes the bound wider.
TEST_F(HostBackendTest, AKernelAloneTakesNoLessThanInAStream) {
  const KernelWork work = kernel_of(2e7, MiB(2));
  prepare(false);
  for (OpId id = 0; id < 40; ++id) backend_->kernel(id, kCompute, work, {});
  backend_->synchronize_device();
  Duration fastest = kNever;
  for (OpId id = 0; id < 40; ++id) fastest = std::min(fastest, times(id).end - times(id).start);
  EXPECT_GT(backend_->kernel_alone(work), fastest * 7 / 10);
}

// A small copy out goes past a long one in: with one engine for both it would end last.
TEST_F(HostBackendTest, OppositeCopiesDoNotWaitForEachOther) {
  prepare(false);
  const Bytes bytes = MiB(24);  // over 100 ms
  const Buffer there = backend_->allocate_host(bytes, true), here = backend_->allocate_host(KiB(4), true);
  const Buffer to = device(bytes), from = device(KiB(4));
  backend_->copy(0, kIn, {there}, {to}, bytes);
  backend_->copy(1, kOut, {from}, {here}, KiB(4));
  backend_->synchronize_stream(kOut);
  backend_->synchronize_device();
  EXPECT_LT(times(1).end, times(0).end);
}

TEST_F(HostBackendTest, SaysWhatItIs) {
  const Environment environment = backend_->environment();
  EXPECT_EQ(value_of(environment, "backend"), "host");
  EXPECT_EQ(value_of(environment, "gpu.memory_bytes"), std::to_string(MiB(32)));
  EXPECT_EQ(value_of(environment, "host_backend.host_to_device_bytes_per_second"), "200000000");
  EXPECT_NE(value_of(environment, "cpu.name"), "");
  EXPECT_EQ(value_of(environment, "host_backend.file"), "") << "no file before it is needed";
  backend_->free_file(backend_->allocate_file(4096));
  EXPECT_NE(value_of(backend_->environment(), "host_backend.file"), "");
}

TEST_F(HostBackendTest, LeavesNoFileBehind) {
  const auto folder =
      std::filesystem::path(::testing::TempDir()) / ("memwall_host_backend_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  HostBackendSettings settings = small_settings();
  settings.scratch = folder;
  backend_ = make_host_backend(settings);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  backend_->free_file(backend_->allocate_file(4096));
  EXPECT_FALSE(std::filesystem::is_empty(folder));
  backend_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
