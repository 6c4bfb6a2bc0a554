#include "formats/rdrr/merkle.h"

#include <algorithm>

namespace doppler::rdrr {

void MerkleTree::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (!block_) block_ = make_hasher(HashKind::kSha256);
    const size_t take = static_cast<size_t>(std::min<uint64_t>(bytes.size(), block_bytes_ - in_block_));
    block_->update(bytes.first(take));
    bytes = bytes.subspan(take);
    in_block_ += take;
    if (in_block_ == block_bytes_) {
      leaves_.push_back(block_->finish());
      block_.reset();
      in_block_ = 0;
    }
  }
}

std::string MerkleTree::root() {
  if (block_ || leaves_.empty()) {  // the last, shorter block; an empty tensor is one empty block
    if (!block_) block_ = make_hasher(HashKind::kSha256);
    leaves_.push_back(block_->finish());
    block_.reset();
  }
  while (leaves_.size() > 1) {
    std::vector<Digest> parents;
    for (size_t i = 0; i < leaves_.size(); i += 2) {
      const std::unique_ptr<Hasher> parent = make_hasher(HashKind::kSha256);
      parent->update(leaves_[i]);
      parent->update(leaves_[std::min(i + 1, leaves_.size() - 1)]);
      parents.push_back(parent->finish());
    }
    leaves_ = std::move(parents);
  }
  return "sha256:" + hex(leaves_.front());
}

}  // namespace doppler::rdrr
