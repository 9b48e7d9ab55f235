#include "models/workload/generate/operators/overlapped_product.h"

#include "models/workload/flops.h"

namespace memwall {
namespace {

constexpr std::string_view kGatheredProduct = "symm_mem::fused_all_gather_matmul",
                           kScatteredProduct = "symm_mem::fused_matmul_reduce_scatter";

// One of `pieces` equal pieces of the rows.
void multiply_piece(Tape& tape, const PieceProduct& product, const Tensor& rows, const Tensor& result,
                    std::int64_t pieces) {
  const std::int64_t m = result.elements() / product.n / pieces;
  TapeKernel work;
  work.name = product.name;
  work.operator_class = OperatorClass::gemm;
  work.type = product.type;
  work.flops = gemm_flops(static_cast<double>(m), static_cast<double>(product.n), static_cast<double>(product.k), 1);
  work.shape = {1, m, product.n, product.k};
  work.bytes = m * product.k * bytes_of(rows.type) + m * product.n * bytes_of(result.type);
  work.bytes += product.factor.touched_bytes() + (product.bias ? product.bias.touched_bytes() : 0);
  tape.kernel(work, {&rows, &product.factor, &product.bias}, {&result});
}

}  // namespace

void gather_beside_product(Tape& tape, TensorParallel& parallel, const Tensor& rows, const Tensor& whole,
                           const PieceProduct& product, const Tensor& result) {
  const GatheredProduct one[] = {{product, result}};
  gather_beside_products(tape, parallel, rows, whole, one);
}

void gather_beside_products(Tape& tape, TensorParallel& parallel, const Tensor& rows, const Tensor& whole,
                            std::span<const GatheredProduct> products) {
  const std::int64_t pieces = parallel.group.ranks();
  const Tensor* const from[] = {&rows};
  const Tensor* const to[] = {&whole};
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    if (piece > 0) parallel.group.wait();  // for the piece that was started before
    if (piece + 1 < pieces)                // the first waits for what made the rows
      parallel.group.start({CollectiveKind::all_gather,
                            parallel.symmetric_memory ? kGatheredProduct : "transformer_engine::ring_exchange",
                            whole.bytes() / (pieces - 1), rows.type, kNoRendezvous, piece == 0},
                           from, to);
    for (const GatheredProduct& one : products)
      multiply_piece(tape, one.product, piece == 0 ? rows : whole, one.result, pieces);
  }
}

Tensor scatter_beside_product(Tape& tape, TensorParallel& parallel, const Tensor& rows, const PieceProduct& product,
                              const Tensor& sums) {
  const std::int64_t pieces = parallel.group.ranks();
  const std::string_view exchange = parallel.symmetric_memory ? kScatteredProduct : "transformer_engine::ring_exchange";
  const std::string_view reduce = parallel.symmetric_memory ? kScatteredProduct : "transformer_engine::reduce";
  const Tensor received = tape.make(exchange, sums.shape, sums.type);
  Tensor result = tape.make(reduce, parallel.group.scattered(sums.shape), sums.type);
  const Tensor* const from[] = {&sums};
  const Tensor* const to[] = {&received};
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    multiply_piece(tape, product, rows, sums, pieces);
    if (piece + 1 == pieces) break;  // this rank's own comes last
    parallel.group.start({CollectiveKind::reduce_scatter, exchange, sums.bytes() / (pieces - 1), sums.type}, from, to);
  }
  parallel.group.wait();
  TapeKernel add;
  add.name = reduce;
  add.operator_class = OperatorClass::elementwise;
  add.type = sums.type;
  add.flops = static_cast<double>((pieces - 1) * result.elements());
  add.shape = {result.elements()};
  add.bytes = sums.bytes() + result.bytes();
  const Tensor* const reads[] = {&received, &sums};
  const Tensor* const writes[] = {&result};
  tape.kernel(add, reads, writes);
  return result;
}

}  // namespace memwall
