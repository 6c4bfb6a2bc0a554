#pragma once
// The slow, obvious form in f64.
#include <cstdint>
#include <span>
#include <vector>

namespace doppler::kernels {

/// in [rows, columns] + rows first, first + step, … of table [.., columns].
std::vector<double> add_rows_reference(std::span<const float> in, std::span<const float> table,
                                       uint32_t columns, uint32_t first, uint32_t step);

}  // namespace doppler::kernels
