"""heddle's ops inside torch: `torch.ops.heddle.<name>`, gradients, `torch.compile`.

Importing it registers every op that can be called by itself. `heddle.ops` imports it when torch is there;
import it yourself where torch comes later than heddle.ops.
"""

import heddle.op
from heddle.torch import own
from heddle.torch.call import call, call_with_autocast, gradient_call_of
from heddle.torch.register import LIBRARY

heddle.op._inside_torch = own

__all__ = ["LIBRARY", "call", "call_with_autocast", "gradient_call_of"]
