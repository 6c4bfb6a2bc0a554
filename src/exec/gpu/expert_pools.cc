#include "exec/gpu/expert_pools.h"

#include <algorithm>

#include "base/quants.h"

namespace doppler::gpu_exec {
namespace {

using kernels::PackedLayout;
using kernels::PackedSegment;

constexpr uint64_t kPieceBytes = 1ull << 20;  // packed at a time

Result<graph::WeightData> load_matrix(const graph::Weight& weight, uint32_t expert,
                                      const graph::WeightSource& source) {
  DOPPLER_TRY(graph::WeightData data, source.load_expert(weight, expert));
  if (!is_runnable(weight.dtype) || data.row_bytes < row_bytes(weight.dtype, weight.columns) ||
      data.bytes.size() < data.row_bytes * weight.rows)
    return fail(ErrorCode::kBadFile, "[gpu] {}, expert {}: {} rows of {} {} values wanted, got {} bytes",
                weight.name, expert, weight.rows, weight.columns, dtype_name(weight.dtype),
                data.bytes.size());
  return data;
}

/// Row `expert` of a bias [experts, rows].
Result<std::vector<float>> load_bias(const graph::Weight& bias, uint32_t expert,
                                     const graph::WeightSource& source) {
  DOPPLER_TRY(const graph::WeightData data, source.load(bias));
  const DTypeInfo& info = dtype_info(bias.dtype);
  const uint64_t padded =
      (uint64_t{bias.columns} + info.block_elems - 1) / info.block_elems * info.block_elems;
  if (!is_runnable(bias.dtype) || data.row_bytes < row_bytes(bias.dtype, bias.columns) ||
      data.bytes.size() < data.row_bytes * (uint64_t{expert} + 1))
    return fail(ErrorCode::kBadFile, "[gpu] {}: {} rows of {} {} values wanted, got {} bytes", bias.name,
                expert + 1, bias.columns, dtype_name(bias.dtype), data.bytes.size());
  std::vector<float> values(padded);
  dequantize(bias.dtype, data.bytes.data() + expert * data.row_bytes, padded, values.data());
  values.resize(bias.columns);
  return values;
}

std::array<const kernels::Plane*, 4> planes_of(const PackedLayout& layout) {
  return {&layout.lo, &layout.hi, &layout.scale, &layout.super};
}

}  // namespace

Result<PackedExpert> pack_expert(const graph::Graph& graph, const ExpertLayer& layer, uint32_t expert,
                                 const graph::WeightSource& source) {
  PackedExpert packed;
  for (const ExpertMatrix& matrix : layer.matrices) {
    const graph::Weight& weight = graph.weights[matrix.weight];
    DOPPLER_TRY(const graph::WeightData data, load_matrix(weight, expert, source));
    PackedMatrix& out = packed.emplace_back();
    kernels::pack_rows(kernels::packed_layout(weight.dtype, weight.rows, weight.columns), 0, weight.rows,
                       data.bytes, data.row_bytes, out.planes);
    source.release_expert(weight, expert);
    if (matrix.bias != graph::kNone) {
      DOPPLER_TRY(out.bias, load_bias(graph.weights[matrix.bias], expert, source));
    }
  }
  return packed;
}

Result<ExpertPools> ExpertPools::make(gpu::Device& device, const StaticPlan& fixed) {
  ExpertPools made;
  for (const ExpertPool& pool : fixed.expert_pools) {
    std::vector<Matrix>& matrices = made.pools_.emplace_back();
    for (const ExpertPool::Matrix& shape : pool.matrices) {
      Matrix& matrix = matrices.emplace_back();
      matrix.rows = shape.rows;
      for (const SlotRange& slots : shape.parts) {
        Part part;
        part.slots = slots;
        part.layout = kernels::packed_layout(shape.dtype, slots.count * shape.rows, shape.columns);
        DOPPLER_TRY(part.buffer, device.create_buffer(part.layout.bytes, "experts"));
        if (shape.bias) {
          DOPPLER_TRY(part.bias, device.create_buffer(uint64_t{part.layout.rows} * 4, "experts' biases"));
        }
        matrix.parts.push_back(std::move(part));
      }
    }
  }
  return made;
}

const ExpertPools::Part& ExpertPools::part_of(const Matrix& matrix, uint32_t slot) {
  return matrix.parts[slot / matrix.parts[0].slots.count];  // all but the last are as large as the first
}

Result<void> ExpertPools::write_bias(gpu::Device& device, const Matrix& matrix, uint32_t slot,
                                     std::span<const float> bias) {
  const Part& part = part_of(matrix, slot);
  const uint64_t offset = uint64_t{slot - part.slots.first} * matrix.rows * 4;
  return device.write(part.bias, offset, std::as_bytes(bias));
}

Result<void> ExpertPools::write(gpu::Device& device, uint32_t pool, uint32_t slot,
                                const PackedExpert& expert) {
  for (size_t m = 0; m < expert.size(); ++m) {
    const Matrix& matrix = pools_[pool][m];
    const Part& part = part_of(matrix, slot);
    const uint64_t first_row = uint64_t{slot - part.slots.first} * matrix.rows;
    const auto planes = planes_of(part.layout);
    for (size_t i = 0; i < planes.size(); ++i) {
      const std::vector<uint32_t>& words = expert[m].planes[i].words;
      if (!words.empty())
        DOPPLER_CHECK_OK(device.write(part.buffer, planes[i]->offset + first_row * planes[i]->words * 4,
                                      std::as_bytes(std::span(words))));
    }
    if (!expert[m].bias.empty()) DOPPLER_CHECK_OK(write_bias(device, matrix, slot, expert[m].bias));
  }
  return {};
}

Result<void> ExpertPools::load(gpu::Device& device, const graph::Graph& graph, const ExpertLayer& layer,
                               uint32_t expert, uint32_t slot, const graph::WeightSource& source) {
  std::array<PackedSegment, 4> segments;
  for (size_t m = 0; m < layer.matrices.size(); ++m) {
    const graph::Weight& weight = graph.weights[layer.matrices[m].weight];
    const Matrix& matrix = pools_[layer.pool][m];
    const Part& part = part_of(matrix, slot);
    DOPPLER_TRY(const graph::WeightData data, load_matrix(weight, expert, source));
    const uint32_t first_row = (slot - part.slots.first) * matrix.rows;
    const auto step = static_cast<uint32_t>(std::max<uint64_t>(kPieceBytes / data.row_bytes, 1));
    for (uint32_t row = 0; row < matrix.rows; row += step) {
      const uint32_t count = std::min(step, matrix.rows - row);
      kernels::pack_rows(part.layout, first_row + row, count,
                         data.bytes.subspan(row * data.row_bytes, count * data.row_bytes), data.row_bytes,
                         segments);
      for (const PackedSegment& segment : segments)
        if (!segment.words.empty())
          DOPPLER_CHECK_OK(
              device.write(part.buffer, segment.offset, std::as_bytes(std::span(segment.words))));
    }
    source.release_expert(weight, expert);
    const graph::WeightId bias = layer.matrices[m].bias;
    if (bias == graph::kNone) continue;
    DOPPLER_TRY(const std::vector<float> values, load_bias(graph.weights[bias], expert, source));
    DOPPLER_CHECK_OK(write_bias(device, matrix, slot, values));
  }
  return {};
}

kernels::ExpertStack ExpertPools::stack(uint32_t pool, uint32_t matrix, uint32_t part) const {
  const Part& p = pools_[pool][matrix].parts[part];
  return {&p.buffer, p.layout, p.bias ? &p.bias : nullptr, p.slots.first, p.slots.count};
}

uint64_t ExpertPools::size_bytes() const {
  uint64_t bytes = 0;
  for (const std::vector<Matrix>& pool : pools_)
    for (const Matrix& matrix : pool)
      for (const Part& part : matrix.parts) bytes += part.buffer.bytes() + part.bias.bytes();
  return bytes;
}

}  // namespace doppler::gpu_exec
