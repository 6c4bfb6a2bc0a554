#pragma once
// What every record_x() needs: checking and binding matrices, grids beyond 65,535, pipelines by file and
// defines.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/common/matrix.h"
#include "kernels/common/wgsl.h"

namespace doppler::kernels {

/// kBadInput unless the matrix has a buffer, at least one row and column, and lies inside the buffer.
Result<void> check_matrix(std::string_view op, std::string_view name, const Matrix& m);

/// kBadInput unless m is rows x width (and check_matrix).
Result<void> check_shape(std::string_view op, std::string_view name, const Matrix& m, uint64_t rows,
                         uint64_t width);

/// kBadInput if `out` shares a buffer with `in`: WebGPU forbids a buffer that a dispatch both reads and
/// writes.
Result<void> check_apart(std::string_view op, std::string_view in_name, const Matrix& in, const Matrix& out);

/// True if both name the same elements.
bool same_place(const Matrix& a, const Matrix& b);

/// True if rows can be read four columns at a time.
inline bool aligned4(const Matrix& m) { return m.offset % 4 == 0 && m.stride % 4 == 0 && m.width % 4 == 0; }

/// The range of the buffer that m covers, from an aligned start, and m's first float within it.
struct BoundMatrix {
  gpu::Binding binding;
  uint32_t offset;  // in floats
};
BoundMatrix bind_matrix(const Matrix& m, const gpu::Caps& caps);

inline uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

/// A grid of at least `workgroups`: index wg.y * grid[0] + wg.x. The kernel leaves out those beyond.
std::array<uint32_t, 3> grid_for(uint64_t workgroups, const gpu::Caps& caps);

/// The pipeline of an embedded file. `label` must differ where `defines` differ.
Result<const gpu::Pipeline*> kernel_pipeline(gpu::Device& device, std::string_view label,
                                             std::string_view file, const Defines& defines,
                                             bool uses_subgroups = false);

/// Records one op, submits it and waits.
template <class Args>
Result<void> run_now(gpu::Device& device, std::string_view label,
                     Result<void> (*record)(gpu::Device&, gpu::Commands&, const Args&), const Args& args) {
  gpu::Commands commands = device.begin(label);
  DOPPLER_CHECK_OK(record(device, commands, args));
  DOPPLER_CHECK_OK(device.submit(std::move(commands)));
  return device.wait();
}

}  // namespace doppler::kernels
