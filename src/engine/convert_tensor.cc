#include "engine/convert_tensor.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/quants.h"

namespace doppler::convert_detail {
namespace {

constexpr uint64_t kChunkBytes = 4u << 20;
constexpr uint64_t kChunkValues = 1u << 20;
constexpr float kLargestF16 = 65504.0f;

uint64_t padded(DType dtype, uint64_t columns) {
  const uint64_t block = dtype_info(dtype).block_elems;
  return (columns + block - 1) / block * block;
}

/// Where a tensor's chunks go.
struct Sink {
  const TensorSource& source;
  const PlannedTensor& tensor;
  rdrr::Writer& writer;
  ConvertProgress& progress;

  /// Writes a chunk made from `source_bytes` of the source, whose pages may then leave memory.
  Result<void> put(std::span<const std::byte> chunk, uint64_t source_bytes) {
    DOPPLER_CHECK_OK(writer.append(chunk));
    source.release(*tensor.source);
    return progress.add(tensor.name, source_bytes);
  }
};

/// Bytes as they are, in order.
Result<void> copy(std::span<const std::byte> bytes, Sink sink) {
  while (!bytes.empty()) {
    const size_t take = std::min<size_t>(bytes.size(), kChunkBytes);
    DOPPLER_CHECK_OK(sink.put(bytes.first(take), take));
    bytes = bytes.subspan(take);
  }
  return {};
}

/// Bytes as they are, rows in another order.
Result<void> copy_rows(std::span<const std::byte> bytes, const PlannedTensor& tensor, Sink sink) {
  const uint64_t rows = tensor.source->rows(), stride = row_bytes(tensor.dtype, tensor.source->columns());
  const uint64_t rows_a_chunk = std::max<uint64_t>(1, kChunkBytes / stride);
  std::vector<std::byte> chunk;
  for (uint64_t first = 0; first < rows; first += rows_a_chunk) {
    const uint64_t count = std::min(rows_a_chunk, rows - first);
    chunk.resize(static_cast<size_t>(count * stride));
    for (uint64_t r = 0; r < count; ++r)
      std::memcpy(chunk.data() + r * stride, bytes.data() + source_row(tensor, first + r) * stride, stride);
    DOPPLER_CHECK_OK(sink.put(chunk, chunk.size()));
  }
  return {};
}

/// Unpacks rows to f32 and packs them into the new type; rows are padded with zeros to whole blocks.
Result<void> repack(std::span<const std::byte> bytes, const PlannedTensor& tensor, ThreadPool& pool,
                    Sink sink) {
  const DType from = tensor.source->dtype, to = tensor.dtype;
  const uint64_t columns = tensor.source->columns(), rows = tensor.source->rows();
  const uint64_t from_stride = row_bytes(from, columns), to_stride = row_bytes(to, columns);
  const uint64_t from_columns = padded(from, columns), to_columns = padded(to, columns);
  const uint64_t width = std::max(from_columns, to_columns);
  const uint64_t rows_a_chunk = std::max<uint64_t>(1, kChunkValues / width);
  std::vector<float> values;
  std::vector<std::byte> packed;
  std::atomic<bool> overflow{false};
  for (uint64_t first = 0; first < rows; first += rows_a_chunk) {
    const uint64_t count = std::min(rows_a_chunk, rows - first);
    values.resize(static_cast<size_t>(count * width));
    packed.resize(static_cast<size_t>(count * to_stride));
    pool.parallel_for(static_cast<size_t>(count), 1, [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        float* row = values.data() + r * width;
        const uint64_t at = source_row(tensor, first + r);
        dequantize(from, bytes.data() + at * from_stride, static_cast<size_t>(from_columns), row);
        std::fill(row + columns, row + width, 0.0f);  // what pads the source's rows is not always zero
        if (to == DType::kF16 &&
            std::any_of(row, row + columns, [](float v) { return std::abs(v) > kLargestF16; }))
          overflow = true;
        quantize(to, row, static_cast<size_t>(to_columns), packed.data() + r * to_stride);
      }
    });
    if (overflow)
      return fail(ErrorCode::kBadInput,
                  "[convert] tensor {} holds values beyond F16's 65504; use --quant bf16 or f32",
                  tensor.name);
    DOPPLER_CHECK_OK(sink.put(packed, count * from_stride));
  }
  return {};
}

}  // namespace

Result<void> ConvertProgress::add(std::string_view what, uint64_t bytes) {
  done += bytes;
  if (report && !report(what, done, total))
    return fail(ErrorCode::kCancelled, "[convert] stopped; nothing was written");
  return {};
}

Result<void> write_tensor(const TensorSource& source, const PlannedTensor& tensor, rdrr::Writer& writer,
                          ThreadPool& pool, ConvertProgress& progress) {
  const TensorInfo& info = *tensor.source;
  DOPPLER_TRY(const TensorBytes bytes, source.bytes(info));
  DOPPLER_CHECK_OK(writer.begin_tensor({tensor.name, tensor.dtype, info.shape, tensor.role, tensor.group}));
  const Sink sink{source, tensor, writer, progress};
  if (tensor.dtype != info.dtype) {
    DOPPLER_CHECK_OK(repack(bytes.data, tensor, pool, sink));
  } else if (tensor.paired_rows != 0) {
    DOPPLER_CHECK_OK(copy_rows(bytes.data, tensor, sink));
  } else {
    DOPPLER_CHECK_OK(copy(bytes.data, sink));
  }
  return writer.end_tensor();
}

}  // namespace doppler::convert_detail
