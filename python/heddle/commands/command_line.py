"""Shared by the commands `python -m heddle.X`: flags and devices as the program has them, and their end."""

import argparse
import difflib
import json
import os
import re
import sys

from heddle.errors import Error, InvalidArgument

_PIPE_CLOSED = 141  # as a shell reports what SIGPIPE ends


def did_you_mean(name, known):
    """ "; did you mean softmax?", or "" where no known name is like it."""
    near = difflib.get_close_matches(str(name).lower(), list(known), n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else ""


class Parser(argparse.ArgumentParser):
    """Refuses unknown flags and choices with the nearest ones."""

    def __init__(self, name, doc):
        super().__init__(
            f"python -m heddle.{name}", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
        )

    def parse_args(self, args=None, namespace=None):
        found, left = self.parse_known_args(args, namespace)
        if not left:
            return found
        flags = [word.split("=")[0] for word in left if word.startswith("-") and word != "-"]
        if not flags:
            self.error(f"'{left[0]}' is not expected")
        known = [flag for action in self._actions for flag in action.option_strings]
        self.error(f"unknown flag {flags[0]}{did_you_mean(flags[0], known)}")

    def error(self, message):
        choice = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)$", message)
        if choice:
            known = re.findall(r"'(.*?)'", choice[2]) or choice[2].split(", ")
            message += did_you_mean(choice[1], known)
        super().error(message)


def device(text):
    """A device as torch names it: "cpu", "cuda", "cuda:1"; a number is that GPU's."""
    if re.fullmatch(r"cpu|cuda(:\d+)?", text):
        return text
    if text.isdigit():
        return f"cuda:{text}"
    meant = "; did you mean cuda?" if text.startswith("gpu") else did_you_mean(text, ("cpu", "cuda"))
    raise argparse.ArgumentTypeError(
        f"'{text}' is no device; a device is cpu, cuda, or cuda:1 and so on{meant}"
    )


def add_device(parser):
    """The flag --device; None where it is not given (`default_device`)."""
    parser.add_argument("--device", type=device, help="cpu, cuda, cuda:1; default: a GPU where there is one")


class Said(str):
    """A line for people that begins a record of `--json`, which may gain members until the command ends."""

    def __new__(cls, text, record):
        made = super().__new__(cls, text)
        made.record = record
        return made


def add_json(parser):
    """The flag --json, for `tell`."""
    parser.add_argument("--json", action="store_true", help="print JSON: a list of records")


def tell(lines, as_json):
    """Prints lines as they come, or with `as_json` the records of those that have one, at the end. Then other
    lines are talk."""
    records = []
    for line in lines:
        if as_json and isinstance(line, Said):
            records.append(line.record)
        else:
            print(line, flush=True, file=sys.stderr if as_json else sys.stdout)
    if as_json:
        print(json.dumps(records, indent=2))


def default_device():
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def op_named(tool, name, known):
    """Refuses a name that is no op's, with the nearest one."""
    if name not in known:
        meant = did_you_mean(name, known) or "; heddle env lists them"
        raise InvalidArgument(f"[{tool}] no op {name}{meant}")
    return name


def run_command(name, main):
    """Runs the command and ends the process. A closed pipe ends it quietly; a mistake is one line."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is for nobody
        code = _PIPE_CLOSED
    except KeyboardInterrupt:
        code = 130
    except Error as error:
        code = f"heddle.{name}: {error}"
    sys.exit(code)
