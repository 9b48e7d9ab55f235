// Tables of `memwall validate --transfer`: errors of measurements that were transferred from one machine to another.
#pragma once

#include <vector>

#include "cli/print/table.h"
#include "validate/transfer/transfer_rows.h"

namespace memwall {

// By kind of work; the worst rows of each; the errors that are stated, with their sources. `in_jobs`: of the same rows,
// with products priced as steps' are.
std::vector<Table> transfer_tables(const std::vector<TransferResult>& results,
                                   const std::vector<TransferResult>& in_jobs);

}  // namespace memwall
