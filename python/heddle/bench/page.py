def render(result):
    return ""
