// Products of tensor parallelism that run in pieces beside their own communication, as Transformer Engine's userbuffers
// have them (--tp-comm-overlap; transformer_engine/common/comm_gemm_overlap/comm_gemm_overlap.cpp) and torch's
// symmetric memory (TensorParallel::symmetric_memory; torch/distributed/_symmetric_memory/__init__.py,
// _pipelined_multi_all_gather_and_consume and _pipelined_produce_and_all2all): a gather whose pieces are multiplied as
// they arrive, a product whose pieces leave as they are made. With t ranks there are t pieces and t - 1 transfers, each
// priced as that share of the whole collective.
#pragma once

#include <span>

#include "models/workload/generate/operators/operators_parallel.h"

namespace memwall {

// A product of rows with a weight.
struct PieceProduct {
  std::string_view name;
  DataType type;  // that its kernel computes in
  std::int64_t n, k;
  const Tensor& factor;
  const Tensor& bias;  // empty: none
};

struct GatheredProduct {
  PieceProduct product;
  const Tensor& result;  // of all tokens
};
// Gathers `rows` (of this rank's tokens) into `whole`, and multiplies each piece with every factor.
// REQUIRES: parallel.by_tokens().
void gather_beside_products(Tape& tape, TensorParallel& parallel, const Tensor& rows, const Tensor& whole,
                            std::span<const GatheredProduct> products);
void gather_beside_product(Tape& tape, TensorParallel& parallel, const Tensor& rows, const Tensor& whole,
                           const PieceProduct& product, const Tensor& result);
// Multiplies `rows` (of all tokens) piece by piece into `sums`, each of which leaves for the rank whose tokens it has;
// what came from the others is added up at the end. The result: this rank's tokens of the sum. REQUIRES: likewise.
Tensor scatter_beside_product(Tape& tape, TensorParallel& parallel, const Tensor& rows, const PieceProduct& product,
                              const Tensor& sums);

}  // namespace memwall
