// How rows of each table become pairs: one function per table, in a file of its own. Internal to validate/transfer.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "validate/published/csv_table.h"
#include "validate/transfer/transfer_rows.h"

namespace memwall {

WorkPart kernel_work(OperatorClass operator_class, DataType type, Phase phase, double bytes, Shape shape = {},
                     int kernels = 1);

// The pair and its reverse.
void add_both_ways(std::vector<TransferRow>& rows, const TransferRow& row);

std::vector<TransferRow> liger_rows(const std::vector<CsvTableRow>& a100, const std::vector<CsvTableRow>& h100);
std::vector<TransferRow> attention_rows(const std::vector<CsvTableRow>& table);
std::vector<TransferRow> stream_rows(const std::vector<CsvTableRow>& table);
std::vector<TransferRow> small_kernel_rows(const std::vector<CsvTableRow>& table);
std::vector<TransferRow> product_rows(const std::vector<CsvTableRow>& table);
std::vector<TransferRow> reduction_rows(const std::vector<CsvTableRow>& table);   // NCCL, vTrain's
std::vector<TransferRow> collective_rows(const std::vector<CsvTableRow>& table);  // NCCL, by payload
std::vector<TransferRow> link_rows(const std::vector<CsvTableRow>& table);
// A step of ResNet-50 on H100 (TrioSim) and on V100 (Kineto), operator by operator.
std::vector<TransferRow> resnet_rows(const std::filesystem::path& triosim, const std::filesystem::path& kineto);

}  // namespace memwall
