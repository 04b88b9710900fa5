"""heddle's ops inside torch: `torch.ops.heddle.<name>`, gradients, `torch.compile`.

Importing it registers every op that can be called by itself. `heddle.ops` imports it as soon as torch is
there, whichever comes first.
"""

from heddle.own.op import use_torch
from heddle.ranges import follow_profilers
from heddle.torch import linear_loss, own
from heddle.torch.call import call, call_with_autocast, gradient_call_of
from heddle.torch.register import LIBRARY

use_torch(own)
own.register_made()  # classes that were made before torch came
follow_profilers()

__all__ = ["LIBRARY", "call", "call_with_autocast", "gradient_call_of", "linear_loss"]
