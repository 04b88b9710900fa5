"""Tables: for notebooks in HTML, and for terminals in lines that fit them."""

LEAST_ROOM = 32  # columns for a text next to the others of its row


def fitted(cells, text):
    """A row of a table for a terminal, 80 columns where there is none: columns of fixed widths, and then a
    text, which is broken, next to the columns or, where they leave it no room, below them."""
    import shutil  # not before it is needed: importing heddle is short
    import textwrap

    width = shutil.get_terminal_size((80, 24)).columns
    begin = len(cells) + 2
    if begin + len(text) <= width:
        return f"{cells}  {text}".rstrip()
    is_below = width - begin < LEAST_ROOM
    indent = " " * (4 if is_below else begin)
    lines = textwrap.wrap(text, width - len(indent), break_long_words=False, break_on_hyphens=False)
    if not is_below:
        return "\n".join([f"{cells}  {lines[0]}", *(indent + line for line in lines[1:])])
    return "\n".join([*fitted_cells(cells, width), *(indent + line for line in lines)])


def fitted_cells(cells, width):
    """Columns as lines: one, or, where they are too wide themselves, their words."""
    import textwrap

    cells = cells.rstrip()
    if len(cells) <= width:
        return [cells]
    return textwrap.wrap(
        cells, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def bytes_text(count):
    """The size of memory in words: 2.5 GB."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def table(rows, heads=(), caption=""):
    """A table of rows of values, the first of which is the row's name."""
    import html  # not before it is needed: importing heddle is short

    def line(tag, row):
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(each))}</{tag}>" for each in row) + "</tr>"

    parts = ['<table class="heddle">']
    if caption:
        parts.append(f"<caption>{html.escape(caption)}</caption>")
    if heads:
        parts.append(f"<thead>{line('th', heads)}</thead>")
    parts += ["<tbody>", *(line("td", row) for row in rows), "</tbody></table>"]
    return "".join(parts)


def code(text):
    """Text as it stands, in a box that scrolls."""
    import html

    return f'<pre style="max-height: 30em; overflow: auto">{html.escape(text)}</pre>'
