"""Tables for notebooks, in HTML."""


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
