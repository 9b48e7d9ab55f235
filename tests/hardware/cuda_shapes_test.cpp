// Do the parts of the CUDA back end that need no GPU do what their headers say?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <thread>

#include "sim/error.h"
#include "sim/trace/trace.h"
#include "validate/replay/host_workers.h"
#include "validate/replay/product_shape.h"
#include "validate/replay/stream_engines.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

double relative(double found, double expected) { return std::abs(found / expected - 1); }

TEST(ProductShape, RealShapesKeepTheirFlopsAndBytes) {
  struct Case {
    double m, n, k;
    std::size_t element;
  };
  // Linear layers, a weight gradient, a vocabulary, in bf16, fp32 and fp64.
  for (const Case& c : {Case{8192, 4096, 4096, 2}, Case{4096, 4096, 8192, 2}, Case{8192, 11008, 4096, 2},
                        Case{2048, 50304, 768, 4}, Case{1024, 1024, 1024, 4}, Case{512, 512, 64, 8}}) {
    const double flops = 2 * c.m * c.n * c.k;
    const double bytes = (c.m * c.k + c.k * c.n + c.m * c.n) * static_cast<double>(c.element);
    const ProductShape shape = product_shape(flops, bytes, c.element, c.element);
    EXPECT_EQ(shape.m, shape.n);
    EXPECT_LT(relative(shape.flops(), flops), 0.02) << c.m << " " << c.n << " " << c.k;
    EXPECT_LT(relative(shape.bytes(c.element, c.element), bytes), 0.05) << c.m << " " << c.n << " " << c.k;
  }
}

TEST(ProductShape, ASquareProductIsFoundAgain) {
  const ProductShape shape = product_shape(2.0 * 4096 * 4096 * 4096, 3.0 * 4096 * 4096 * 2, 2, 2);
  EXPECT_EQ(shape, (ProductShape{4096, 4096, 4096, 1}));
}

TEST(ProductShape, OfTwoRootsTheOneNearerToACubeIsTaken) {
  // m = 1024, k = 3072 and m = 2048, k = 768 have the same FLOPs and bytes; ln(2048 / 768) < ln(3072 / 1024).
  const ProductShape deep{1024, 1024, 3072, 1}, flat{2048, 2048, 768, 1};
  ASSERT_EQ(deep.flops(), flat.flops());
  ASSERT_EQ(deep.bytes(2, 2), flat.bytes(2, 2));
  EXPECT_EQ(product_shape(deep.flops(), deep.bytes(2, 2), 2, 2), flat);
}

TEST(ProductShape, FewerBytesThanAnyProductTouchesMakeACube) {
  const double flops = 2.0 * 2048 * 2048 * 2048;
  for (const double bytes : {0.0, 1.0, 1e6}) {
    const ProductShape shape = product_shape(flops, bytes, 2, 2);
    EXPECT_EQ(shape, (ProductShape{2048, 2048, 2048, 1})) << bytes;
  }
}

TEST(ProductShape, OutputElementsMayBeLargerThanThoseOfTheInputs) {
  const double m = 8192, k = 4096;  // fp8 in, bf16 out
  const double flops = 2 * m * m * k, bytes = 2 * m * k + 2 * m * m;
  const ProductShape shape = product_shape(flops, bytes, 1, 2);
  EXPECT_LT(relative(shape.flops(), flops), 0.02);
  EXPECT_LT(relative(shape.bytes(1, 2), bytes), 0.05);
}

RC_GTEST_PROP(ProductShape, WhateverIsAskedForIsAProductThatFits, ()) {
  const double flops = std::pow(10.0, *rc::gen::inRange(0, 170) / 10.0);
  const double bytes = *rc::gen::inRange(0, 8) == 0 ? 0 : std::pow(10.0, *rc::gen::inRange(0, 120) / 10.0);
  const std::size_t element = *rc::gen::element<std::size_t>(1, 2, 4, 8);
  const ProductShape whole = product_shape(flops, bytes, element, element);
  const std::size_t largest = std::size_t{1} << *rc::gen::inRange(12, 31);
  const ProductShape shape = split_to_fit(whole, element, element, largest, largest);
  for (const std::int64_t side : {shape.m, shape.n, shape.k}) {
    RC_ASSERT(side >= kProductStep);
    RC_ASSERT(side % kProductStep == 0);
  }
  const auto bytes_of = [&](std::int64_t a, std::int64_t b) {
    return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(element);
  };
  RC_ASSERT(bytes_of(std::max(shape.m, shape.n), shape.k) <= static_cast<double>(largest));
  RC_ASSERT(bytes_of(shape.m, shape.n) <= static_cast<double>(largest));
  // Halves are rounded up to whole steps: little where there is room for many.
  RC_ASSERT(shape.flops() >= whole.flops());
  RC_ASSERT(shape.flops() <= whole.flops() * (largest >= std::size_t{1} << 20 ? 1.5 : 8));
  if (flops > 1e9) RC_ASSERT(whole.flops() > flops / 2);
}

TEST(ProductShape, WhatFitsIsNotSplit) {
  const ProductShape shape{4096, 4096, 4096, 1};
  EXPECT_EQ(split_to_fit(shape, 2, 2, 4096u * 4096 * 2, 4096u * 4096 * 2), shape);
  EXPECT_EQ(split_to_fit(shape, 2, 2, 4096u * 4096 * 2, 4096u * 4096).repeat, 2u);
}

// A schedule of one stream with the given ops.
Trace one_stream(StreamRole role, const std::vector<OpKind>& kinds) {
  Trace trace;
  trace.name = "test";
  trace.threads.push_back({"main"});
  trace.streams.push_back({"tier", 0, role});
  for (const OpKind kind : kinds) {
    Op op;
    op.kind = kind;
    trace.ops.push_back(op);
  }
  return trace;
}

TEST(StreamEngines, OpsDecideThenTheRole) {
  using Engines = std::vector<StreamEngine>;
  const auto engines = [](StreamRole role, const std::vector<OpKind>& kinds) {
    return stream_engines(one_stream(role, kinds));
  };
  EXPECT_EQ(engines(StreamRole::storage, {OpKind::storage_io}), Engines{StreamEngine::storage});
  EXPECT_EQ(engines(StreamRole::copy, {OpKind::storage_io}), Engines{StreamEngine::storage});
  EXPECT_EQ(engines(StreamRole::storage, {OpKind::copy}), Engines{StreamEngine::device});
  EXPECT_EQ(engines(StreamRole::storage, {OpKind::event_wait, OpKind::event_record}), Engines{StreamEngine::storage});
  EXPECT_EQ(engines(StreamRole::compute, {}), Engines{StreamEngine::device});
}

TEST(StreamEngines, AMixedStreamIsRefusedByNameAndOps) {
  const Trace trace = one_stream(StreamRole::copy, {OpKind::mark, OpKind::copy, OpKind::storage_io});
  try {
    stream_engines(trace);
    FAIL() << "expected a UsageError";
  } catch (const UsageError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("\"tier\""), std::string::npos) << message;
    EXPECT_NE(message.find("op 1"), std::string::npos) << message;
    EXPECT_NE(message.find("op 2"), std::string::npos) << message;
  }
}

constexpr Bytes kChunk = 16384;  // what a worker updates at a time

Operand operand(std::vector<float>& memory, std::uint64_t expected, std::uint64_t made) {
  return {{PlaceClass::pageable, memory.data(), 0, static_cast<Bytes>(memory.size() * sizeof(float))}, expected, made};
}

TEST(HostWorkers, WriteWhatTheOpWritesAndNothingElse) {
  const std::size_t numbers = 3 * kChunk / sizeof(float) + 100;  // a tail that is no whole chunk
  std::vector<float> gradient(numbers, 0.5f), parameter(numbers, 1.0f), unused(numbers, 2.0f);
  const std::vector<float> gradient_before = gradient, unused_before = unused;
  HostWorkers workers(3);
  const std::vector<Operand> operands = {operand(gradient, 1, 0), operand(parameter, 2, 3), operand(unused, 0, 0)};
  workers.update(MiB(4), operands);
  EXPECT_EQ(gradient, gradient_before);
  EXPECT_EQ(unused, unused_before);
  // One step of three chunks: parameter, mean and variance.
  EXPECT_NE(parameter[0], 1.0f);
  EXPECT_FLOAT_EQ(parameter[kChunk / 4], 0.9f * 1.0f + 0.1f * 0.5f);
  EXPECT_FLOAT_EQ(parameter[2 * kChunk / 4], 0.999f * 1.0f + 0.001f * 0.25f);
  for (std::size_t i = 3 * kChunk / 4; i < numbers; ++i) EXPECT_EQ(parameter[i], 1.0f) << "past the last whole chunk";
}

TEST(HostWorkers, FewBytesTouchFewNumbers) {
  std::vector<float> parameter(3 * kChunk / sizeof(float), 1.0f);
  HostWorkers workers(2);
  const std::vector<Operand> operands = {operand(parameter, 1, 2)};
  workers.update(28 * 10, operands);  // ten numbers
  EXPECT_NE(parameter[9], 1.0f);
  EXPECT_EQ(parameter[10], 1.0f);
  workers.update(0, operands);
  EXPECT_EQ(parameter[10], 1.0f);
}

TEST(HostWorkers, CallersTakeTurns) {
  HostWorkers workers(2);
  std::vector<std::vector<float>> memory(4, std::vector<float>(3 * kChunk / sizeof(float), 1.0f));
  std::vector<std::thread> callers;
  for (auto& own : memory)
    callers.emplace_back([&workers, &own] {
      for (int i = 0; i < 20; ++i) workers.update(28 * kChunk / 4, std::vector<Operand>{operand(own, 1, 2)});
    });
  for (std::thread& caller : callers) caller.join();
  for (const auto& own : memory) EXPECT_EQ(own, memory[0]);
  EXPECT_NE(memory[0][0], 1.0f);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
