#include "tests/support/sqlite_writer.h"

#include <sqlite3.h>

#include <stdexcept>

namespace memwall {
namespace {

constexpr const char* kTables = R"(
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER,
  maxWarpsPerSm INTEGER, threadsPerWarp INTEGER, maxBlocksPerSm INTEGER, maxRegistersPerSm INTEGER,
  maxShmemPerSm INTEGER, computeMajor INTEGER, computeMinor INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT,
  globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER,
  contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER,
  shortName INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER,
  blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER,
  contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER,
  srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER,
  contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, value INTEGER, bytes INTEGER,
  memKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER,
  contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER, eventId INTEGER);
CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER NOT NULL, globalPid INTEGER, deviceId INTEGER,
  contextId INTEGER, address INTEGER, pc INTEGER, bytes INTEGER, memKind INTEGER, memoryOperationType INTEGER);
)";

// Process 5 (5 << 24 = 83886080), threads 21 and 22; times around 0: the session's start.
constexpr const char* kRows = R"(
INSERT INTO StringIds VALUES (1,'cudaLaunchKernel_v7000'),(2,'cudaMemcpyAsync_v3020'),(3,'cudaMemsetAsync_v3020'),
  (4,'cudaDeviceSynchronize_v3020'),(5,'cudaMalloc_v3020'),(6,'ampere_sgemm_128x64'),(7,'void add<float>'),
  (8,'optimizer step'),(9,'cuLaunchKernel');
INSERT INTO TARGET_INFO_GPU VALUES (1,0,'NVIDIA A100-SXM4-40GB',42404806656,108,64,32,32,65536,167936,8,0);
INSERT INTO NVTX_EVENTS VALUES
  (-5000000,NULL,75,'cuBLAS',83886101,NULL,NULL,1),
  (-100000,900000,59,'train_step 1',83886101,NULL,NULL,0),
  (-90000,200000,59,'forward pass',83886101,NULL,NULL,0),
  (-80000,100000,59,'aten::addmm, seq = 7, op_id = 12, sizes = [[8], [4, 16], [16, 8]]',83886101,NULL,NULL,0),
  (210000,500000,60,'backward pass',83886101,83886101,NULL,0),
  (220000,300000,59,'autograd::engine::evaluate_function: AddmmBackward0, seq = 7, op_id = 13',83886102,NULL,NULL,0),
  (600000,700000,59,NULL,83886101,NULL,8,0),
  (710000,NULL,34,'a mark',83886101,NULL,NULL,0);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES
  (-50000,-45000,0,83886101,1,1,0),(10000,15000,0,83886101,2,2,0),(60000,64000,0,83886101,3,3,0),
  (230000,235000,0,83886102,4,1,0),(231000,234000,1,83886102,5,9,0),(610000,614000,0,83886101,6,1,0),
  (720000,860000,0,83886101,7,4,0),(870000,880000,0,83886101,8,5,0);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
  (-40000,0,0,1,7,1,83886080,6,6,64,108,2,1,256,1,1,1024,0,NULL),
  (240000,440000,0,1,7,4,83886080,6,6,64,216,1,1,256,1,1,0,0,NULL),
  (620000,650000,0,1,7,6,83886080,99,7,16,10,1,1,128,1,1,0,0,NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (18000,38000,0,1,7,2,83886080,1048576,1,0,2);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (70000,71000,0,1,7,3,83886080,0,4096,2);
INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (720500,859000,0,1,4294967295,7,83886080,4,4294967295);
INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (879000,83886080,0,1,65536,0,2097152,2,0);
)";

}  // namespace

std::string sqlite_file(const std::string& statements) {
  sqlite3* database = nullptr;
  sqlite3_open(":memory:", &database);
  char* error = nullptr;
  if (sqlite3_exec(database, statements.c_str(), nullptr, nullptr, &error) != SQLITE_OK) {
    const std::string why = error == nullptr ? "" : error;
    sqlite3_free(error);
    sqlite3_close(database);
    throw std::runtime_error(why);
  }
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(database, "main", &size, 0);
  std::string file(reinterpret_cast<char*>(bytes), static_cast<std::size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(database);
  return file;
}

std::string nsys_report(const std::string& more) { return sqlite_file(std::string(kTables) + kRows + more); }

}  // namespace memwall
