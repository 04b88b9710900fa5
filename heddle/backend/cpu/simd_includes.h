// Includes what the sources that are compiled once for each target of Highway need before their namespaces.
#pragma once

#include "heddle/backend/cpu/arch/matrix.h"
#include "heddle/backend/cpu/bodies.h"
#include "heddle/backend/cpu/element.h"
#include "heddle/backend/cpu/matrix_element.h"
#include "heddle/backend/cpu/scratch.h"
#include "heddle/backend/cpu/weight_element.h"
#include "heddle/ir/product.h"
#include "heddle/ir/step.h"
#include "heddle/tile/block.h"
