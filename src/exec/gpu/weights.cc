#include "exec/gpu/weights.h"

#include <algorithm>
#include <array>

#include "base/quants.h"

namespace doppler::gpu_exec {
namespace {

constexpr uint64_t kPieceBytes = 1ull << 20;     // packed at a time
constexpr uint64_t kReleaseBytes = 16ull << 20;  // read before the source's pages go

Result<graph::WeightData> load(const graph::WeightSource& source, const graph::Weight& weight) {
  DOPPLER_TRY(graph::WeightData data, source.load(weight));
  if (!is_runnable(weight.dtype) || data.row_bytes < row_bytes(weight.dtype, weight.columns) ||
      data.bytes.size() < data.row_bytes * weight.rows)
    return fail(ErrorCode::kBadFile, "[gpu] {}: {} rows of {} {} values were wanted, got {} bytes",
                weight.name, weight.rows, weight.columns, dtype_name(weight.dtype), data.bytes.size());
  return data;
}

}  // namespace

// Tells how far the upload is and asks whether to go on.
class UploadMeter {
 public:
  UploadMeter(const Progress& progress, const graph::Graph& graph) : progress_(progress) {
    for (const graph::Weight& weight : graph.weights)
      if (weight.experts == 0) total_ += row_bytes(weight.dtype, weight.columns) * weight.rows;
  }
  Result<void> add(const graph::Weight& weight, uint64_t bytes) {
    done_ += bytes;
    if (progress_ && !progress_(weight.name, std::min(done_, total_), total_))
      return fail(ErrorCode::kCancelled, "[gpu] loading was stopped at {}", weight.name);
    return {};
  }

 private:
  const Progress& progress_;
  uint64_t done_ = 0, total_ = 0;
};

namespace {

// The weights that kernels read as plain f32: norms, biases and sinks.
std::vector<graph::WeightId> vectors_of(const graph::Graph& graph) {
  std::vector<graph::WeightId> ids;
  const auto add = [&ids](graph::WeightId id) {
    if (id != graph::kNone) ids.push_back(id);
  };
  for (const graph::Node& node : graph.nodes) {
    if (node.op == graph::Op::kRmsNorm || node.op == graph::Op::kLayerNorm ||
        node.op == graph::Op::kAttention)
      for (const graph::WeightId id : node.weights) add(id);
    if (node.op == graph::Op::kLayerNorm || node.op == graph::Op::kLinear)
      for (const graph::WeightId id : node.biases) add(id);
  }
  return ids;
}

Result<void> upload_rows(gpu::Device& device, const gpu::Buffer& buffer, const kernels::PackedLayout& layout,
                         const graph::Weight& weight, std::span<const std::byte> rows, uint64_t row_bytes,
                         const graph::WeightSource& source, UploadMeter& meter) {
  const auto step = static_cast<uint32_t>(std::max<uint64_t>(kPieceBytes / row_bytes, 1));
  std::array<kernels::PackedSegment, 4> segments;
  uint64_t unreleased = 0;
  for (uint32_t first = 0; first < layout.rows; first += step) {
    const uint32_t count = std::min(step, layout.rows - first);
    const uint64_t bytes = count * row_bytes;
    kernels::pack_rows(layout, first, count, rows.subspan(first * row_bytes, bytes), row_bytes, segments);
    for (const kernels::PackedSegment& segment : segments)
      if (!segment.words.empty())
        DOPPLER_CHECK_OK(device.write(buffer, segment.offset, std::as_bytes(std::span(segment.words))));
    DOPPLER_CHECK_OK(meter.add(weight, bytes));
    if ((unreleased += bytes) >= kReleaseBytes) {
      source.release(weight);
      unreleased = 0;
    }
  }
  return {};
}

}  // namespace

Result<void> GpuWeights::upload_vectors(gpu::Device& device, const graph::Graph& graph,
                                        const graph::WeightSource& source, UploadMeter& meter) {
  vector_base_.assign(graph.weights.size(), graph::kNone);
  std::vector<float> values;
  for (const graph::WeightId id : vectors_of(graph)) {
    if (vector_base_[id] != graph::kNone) continue;
    const graph::Weight& weight = graph.weights[id];
    DOPPLER_TRY(const graph::WeightData data, load(source, weight));
    const DTypeInfo& info = dtype_info(weight.dtype);
    const uint32_t padded = (weight.columns + info.block_elems - 1) / info.block_elems * info.block_elems;
    const size_t base = values.size();
    vector_base_[id] = static_cast<uint32_t>(base);
    values.resize(base + padded);
    dequantize(weight.dtype, data.bytes.data(), padded, values.data() + base);
    values.resize(base + (weight.columns + 3) / 4 * 4);  // kernels read four at a time
    source.release(weight);
    DOPPLER_CHECK_OK(meter.add(weight, data.row_bytes));
  }
  if (values.empty()) values.resize(4);  // a buffer cannot be empty
  DOPPLER_TRY(vectors_, device.create_buffer(values.size() * 4, "vectors"));
  return device.write(vectors_, 0, std::as_bytes(std::span(values)));
}

Result<void> GpuWeights::upload_matrix(gpu::Device& device, const graph::Weight& weight, graph::WeightId id,
                                       const std::vector<WeightPart>& parts,
                                       const graph::WeightSource& source, UploadMeter& meter) {
  DOPPLER_TRY(const graph::WeightData data, load(source, weight));
  for (const WeightPart& part : parts) {
    const kernels::PackedLayout layout = kernels::packed_layout(weight.dtype, part.rows, weight.columns);
    DOPPLER_TRY(gpu::Buffer buffer, device.create_buffer(layout.bytes, weight.name));
    DOPPLER_CHECK_OK(upload_rows(device, buffer, layout, weight,
                                 data.bytes.subspan(part.first * data.row_bytes), data.row_bytes, source,
                                 meter));
    parts_[id].push_back({std::move(buffer), layout, part.first});
  }
  source.release(weight);
  return {};
}

Result<GpuWeights> GpuWeights::upload(gpu::Device& device, const graph::Graph& graph,
                                      const std::vector<std::vector<WeightPart>>& parts,
                                      const graph::WeightSource& source, const Progress& progress) {
  GpuWeights weights;
  weights.parts_.resize(graph.weights.size());
  UploadMeter meter(progress, graph);
  DOPPLER_CHECK_OK(weights.upload_vectors(device, graph, source, meter));
  for (graph::WeightId id = 0; id < graph.weights.size(); ++id)
    if (!parts[id].empty())
      DOPPLER_CHECK_OK(weights.upload_matrix(device, graph.weights[id], id, parts[id], source, meter));
  DOPPLER_CHECK_OK(device.wait());  // staging goes, and an error of the copies shows here
  return weights;
}

kernels::PackedWeight GpuWeights::part(graph::WeightId weight, uint32_t index) const {
  const Part& part = parts_[weight][index];
  return {&part.buffer, part.layout, part.first_row};
}

uint64_t GpuWeights::size_bytes() const {
  uint64_t bytes = vectors_.bytes();
  for (const std::vector<Part>& parts : parts_)
    for (const Part& part : parts) bytes += part.buffer.bytes();
  return bytes;
}

}  // namespace doppler::gpu_exec
