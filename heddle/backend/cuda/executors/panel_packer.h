// Packs weights that lie on a GPU to panels there.
#pragma once

#include <memory>

#include "heddle/backend/cuda/runtime/device.h"
#include "heddle/ir/executor/panel_packer.h"

namespace heddle::cuda {

// The device's primary context is current. It compiles its kernels, or takes them from the cache.
std::unique_ptr<PanelPacker> make_panel_packer(const Device& device);

}  // namespace heddle::cuda
