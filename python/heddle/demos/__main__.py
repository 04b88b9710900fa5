"""python -m heddle.demos: runs demos, each of which compares both sides of a claim. The exit code counts
those that fail."""

import time

from heddle.commands.command_line import Parser, run_command
from heddle.demos import DEMOS


def main(words=None):
    parser = Parser("demos", __doc__)
    parser.add_argument("demo", nargs="*", choices=[[], *DEMOS], help=f"all unless given: {', '.join(DEMOS)}")
    parser.add_argument("--quick", action="store_true", help="small sizes: seconds in all")
    arguments = parser.parse_args(words)
    failed = 0
    for name in arguments.demo or DEMOS:
        begin = time.perf_counter()
        try:
            text, mark = DEMOS[name](arguments.quick), "ok"
        except AssertionError as error:
            text, mark = str(error) or "its claim does not hold", "FAILS"
            failed += 1
        print(f"{name:<10} {mark:<6} {time.perf_counter() - begin:5.1f} s  {text}", flush=True)
    return failed


if __name__ == "__main__":
    run_command("demos", main)
