#include "kernels/common/record.h"

#include <algorithm>

namespace doppler::kernels {

Result<void> check_matrix(std::string_view op, std::string_view name, const Matrix& m) {
  if (m.buffer == nullptr || !*m.buffer) return fail(ErrorCode::kBadInput, "[{}] {} has no buffer", op, name);
  if (m.rows == 0 || m.width == 0 || m.stride < m.width)
    return fail(ErrorCode::kBadInput,
                "[{}] {}: rows, width and a stride of at least width wanted, got {} x {}, {}", op, name,
                m.rows, m.width, m.stride);
  const uint64_t end = (m.offset + uint64_t{m.rows - 1} * m.stride + m.width) * 4;
  if (end > m.buffer->bytes())
    return fail(ErrorCode::kBadInput, "[{}] {} ends at byte {}, its buffer has {}", op, name, end,
                m.buffer->bytes());
  return {};
}

Result<void> check_shape(std::string_view op, std::string_view name, const Matrix& m, uint64_t rows,
                         uint64_t width) {
  if (m.rows != rows || m.width != width)
    return fail(ErrorCode::kBadInput, "[{}] {}: {} x {} wanted, got {} x {}", op, name, rows, width, m.rows,
                m.width);
  return check_matrix(op, name, m);
}

Result<void> check_apart(std::string_view op, std::string_view in_name, const Matrix& in, const Matrix& out) {
  if (in.buffer == out.buffer)
    return fail(ErrorCode::kBadInput, "[{}] {} and out share a buffer; give out one of its own", op, in_name);
  return {};
}

bool same_place(const Matrix& a, const Matrix& b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.stride == b.stride && a.width == b.width;
}

BoundMatrix bind_matrix(const Matrix& m, const gpu::Caps& caps) {
  const uint64_t align = std::max<uint64_t>(caps.min_storage_offset_alignment, 16) / 4;  // in floats
  const uint64_t start = m.offset / align * align;
  const uint64_t inside = m.offset - start;
  const uint64_t floats = inside + uint64_t{m.rows - 1} * m.stride + m.width;
  return {{m.buffer, start * 4, floats * 4}, static_cast<uint32_t>(inside)};
}

std::array<uint32_t, 3> grid_for(uint64_t workgroups, const gpu::Caps& caps) {
  const uint64_t rows = std::max<uint64_t>(ceil_div(workgroups, caps.max_workgroups_per_dimension), 1);
  return {static_cast<uint32_t>(ceil_div(workgroups, rows)), static_cast<uint32_t>(rows), 1};
}

Result<const gpu::Pipeline*> kernel_pipeline(gpu::Device& device, std::string_view label,
                                             std::string_view file, const Defines& defines,
                                             bool uses_subgroups) {
  DOPPLER_TRY(const std::string_view source, expand_wgsl(file, defines));
  gpu::PipelineDesc desc;
  desc.label = label;
  desc.source = source;
  desc.uses_subgroups = uses_subgroups;
  return device.pipeline(desc);
}

}  // namespace doppler::kernels
