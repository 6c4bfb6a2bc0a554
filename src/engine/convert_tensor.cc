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
constexpr size_t kMxfp4Block = 17;  // a scale byte, then 32 values: 0 … 15 in the low halves

uint64_t padded(DType dtype, uint64_t columns) {
  const uint64_t block = dtype_info(dtype).block_elems;
  return (columns + block - 1) / block * block;
}

/// Where a tensor's chunks go.
struct Sink {
  const PlannedTensor& tensor;
  rdrr::Writer& writer;
  ThreadPool& pool;
  ConvertProgress& progress;

  Result<void> put(std::span<const std::byte> chunk, uint64_t source_bytes) const {
    DOPPLER_CHECK_OK(writer.append(chunk));
    return progress.add(tensor.name, source_bytes);
  }
};

/// Bytes as they are, in order; pages of the source leave memory behind.
template <class Release>
Result<void> copy(std::span<const std::byte> bytes, const Sink& sink, Release release) {
  while (!bytes.empty()) {
    const size_t take = std::min<size_t>(bytes.size(), kChunkBytes);
    DOPPLER_CHECK_OK(sink.put(bytes.first(take), take));
    release();
    bytes = bytes.subspan(take);
  }
  return {};
}

/// The loaded rows of one part.
struct Rows {
  const Part& part;
  graph::WeightData even, odd;
  uint64_t stride;  // bytes of a row

  const std::byte* row(uint64_t r) const {
    const bool second = part.odd && r % 2 == 1;
    const RowRange& range = second ? *part.odd : part.even;
    const uint64_t index = part.odd ? r / 2 : unpaired_row(part, r);
    return (second ? odd : even).bytes.data() + (range.first + index * range.step) * stride;
  }
  bool in_order() const { return !part.odd && part.paired_rows == 0 && part.even.step == 1; }
};

Result<graph::WeightData> load(const graph::WeightSource& weights, const RowRange& range) {
  return range.weight.experts > 0 ? weights.load_expert(range.weight, range.expert)
                                  : weights.load(range.weight);
}

/// Unpacks a row to f32 and packs it into the new type; it is padded with zeros to whole blocks. False: a
/// value is beyond F16.
bool repack_row(const PlannedTensor& tensor, const std::byte* from, std::span<float> values, std::byte* to) {
  const uint64_t columns = tensor.columns();
  dequantize(tensor.from, from, static_cast<size_t>(padded(tensor.from, columns)), values.data());
  // What pads the source's rows is not always zero.
  std::fill(values.begin() + static_cast<std::ptrdiff_t>(columns), values.end(), 0.0f);
  const auto row = values.first(static_cast<size_t>(columns));
  const bool fits = tensor.dtype != DType::kF16 ||
                    std::none_of(row.begin(), row.end(), [](float v) { return std::abs(v) > kLargestF16; });
  quantize(tensor.dtype, values.data(), static_cast<size_t>(padded(tensor.dtype, columns)), to);
  return fits;
}

/// 16 bytes of neighbouring pairs (value 2i in the low half of byte i) out of each block of a row.
void write_pairs(std::span<const std::byte> row, std::byte* to) {
  for (size_t at = 0; at < row.size(); at += kMxfp4Block, to += 16) {
    const auto value = [&](size_t i) { return (row[at + 1 + i % 16] >> (i < 16 ? 0 : 4)) & std::byte{15}; };
    for (size_t i = 0; i < 16; ++i) to[i] = value(2 * i) | (value(2 * i + 1) << 4);
  }
}

void write_scales(std::span<const std::byte> row, std::byte* to) {
  for (size_t at = 0; at < row.size(); at += kMxfp4Block) *to++ = row[at];
}

/// Rows in the new order, form and type.
Result<void> write_rows(const Rows& rows, const Sink& sink) {
  const PlannedTensor& tensor = sink.tensor;
  const uint64_t columns = rows.part.even.weight.columns;
  const bool repack = tensor.form == Form::kRows && tensor.dtype != tensor.from;
  const uint64_t width = std::max(padded(tensor.from, columns), padded(tensor.dtype, columns));
  const uint64_t to_stride = tensor.form == Form::kMxfp4Pairs    ? columns / 2
                             : tensor.form == Form::kMxfp4Scales ? columns / 32
                                                                 : row_bytes(tensor.dtype, columns);
  const uint64_t rows_a_chunk = std::max<uint64_t>(1, kChunkValues / width);
  std::vector<float> values;
  std::vector<std::byte> out;
  std::atomic<bool> overflow{false};
  for (uint64_t first = 0; first < rows.part.rows; first += rows_a_chunk) {
    const uint64_t count = std::min<uint64_t>(rows_a_chunk, rows.part.rows - first);
    if (repack) values.resize(static_cast<size_t>(count * width));
    out.resize(static_cast<size_t>(count * to_stride));
    sink.pool.parallel_for(static_cast<size_t>(count), 1, [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const std::byte* const from = rows.row(first + r);
        std::byte* const to = out.data() + r * to_stride;
        if (tensor.form == Form::kMxfp4Pairs)
          write_pairs({from, static_cast<size_t>(rows.stride)}, to);
        else if (tensor.form == Form::kMxfp4Scales)
          write_scales({from, static_cast<size_t>(rows.stride)}, to);
        else if (!repack)
          std::memcpy(to, from, to_stride);
        else if (!repack_row(tensor, from, std::span(values).subspan(r * width, width), to))
          overflow = true;
      }
    });
    if (overflow)
      return fail(ErrorCode::kBadInput,
                  "[convert] tensor {} holds values beyond F16's 65504; use --quant bf16 or f32",
                  tensor.name);
    const uint64_t source_stride = tensor.form == Form::kRows ? rows.stride : to_stride;
    DOPPLER_CHECK_OK(sink.put(out, count * source_stride));
  }
  return {};
}

Result<void> write_part(const graph::WeightSource& weights, const Part& part, const Sink& sink) {
  const PlannedTensor& tensor = sink.tensor;
  Rows rows{part, {}, {}, row_bytes(tensor.from, part.even.weight.columns)};
  DOPPLER_TRY(rows.even, load(weights, part.even));
  if (part.odd) {
    DOPPLER_TRY(rows.odd, load(weights, *part.odd));
  }
  if (tensor.form == Form::kRows && tensor.dtype == tensor.from && rows.in_order()) {
    const auto bytes = rows.even.bytes.subspan(static_cast<size_t>(part.even.first * rows.stride),
                                               static_cast<size_t>(part.rows * rows.stride));
    DOPPLER_CHECK_OK(copy(bytes, sink, [&] { weights.release(part.even.weight); }));
  } else {
    DOPPLER_CHECK_OK(write_rows(rows, sink));
  }
  weights.release(part.even.weight);
  if (part.odd) weights.release(part.odd->weight);
  return {};
}

}  // namespace

Result<void> ConvertProgress::add(std::string_view what, uint64_t bytes) {
  done += bytes;
  if (report && !report(what, done, total))
    return fail(ErrorCode::kCancelled, "[convert] stopped; nothing was written");
  return {};
}

Result<void> write_tensor(const model::LoadedModel& source, const PlannedTensor& tensor, rdrr::Writer& writer,
                          ThreadPool& pool, ConvertProgress& progress) {
  DOPPLER_CHECK_OK(writer.begin_tensor({tensor.name, tensor.dtype, tensor.shape, tensor.role, tensor.group}));
  const Sink sink{tensor, writer, pool, progress};
  if (tensor.form == Form::kBytes) {
    DOPPLER_TRY(const TensorBytes bytes, source.source->bytes(*tensor.source));
    if (tensor.dtype == tensor.from) {
      DOPPLER_CHECK_OK(copy(bytes.data, sink, [&] { source.source->release(*tensor.source); }));
    } else {  // --compat: a vector in a type that the original does not read
      const uint64_t columns = tensor.columns(), stride = row_bytes(tensor.from, columns);
      std::vector<float> values(
          static_cast<size_t>(std::max(padded(tensor.from, columns), padded(tensor.dtype, columns))));
      std::vector<std::byte> out(static_cast<size_t>(row_bytes(tensor.dtype, columns)));
      for (uint64_t r = 0; r < tensor.rows(); ++r) {
        if (!repack_row(tensor, bytes.data.data() + r * stride, values, out.data()))
          return fail(ErrorCode::kBadInput, "[convert] tensor {} holds values beyond F16's 65504",
                      tensor.name);
        DOPPLER_CHECK_OK(sink.put(out, stride));
      }
    }
  }
  for (const Part& part : tensor.parts) DOPPLER_CHECK_OK(write_part(*source.weights, part, sink));
  return writer.end_tensor();
}

}  // namespace doppler::convert_detail
