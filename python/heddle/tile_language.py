"""python -m heddle.tile_language: the page of the tile language, in which bodies of ops are written.

`--headers` prints the folder of the headers that a body is compiled with, for an editor:
heddle/tile/block.h has the language, heddle/tile/math.cuh the functions of values.
"""

from pathlib import Path

from heddle.commands.command_line import Parser, run_command

PAGE = Path(__file__).with_name("tile_language.md")
HEADERS = Path(__file__).with_name("include")


def main(words=None):
    parser = Parser("tile_language", __doc__)
    parser.add_argument("--headers", action="store_true", help="print the folder of the headers")
    parser.add_argument("--path", action="store_true", help="print the path of the page")
    arguments = parser.parse_args(words)
    if arguments.headers or arguments.path:
        print(HEADERS if arguments.headers else PAGE)
    else:
        print(PAGE.read_text(), end="")
    return 0


if __name__ == "__main__":
    run_command("tile_language", main)
