#!/usr/bin/env python3
"""Replaces links in Markdown to files that a package does not contain by their text: links.py FOLDER."""

import re
import sys
from pathlib import Path

for page in Path(sys.argv[1]).rglob("*.md"):

    def kept(instead):
        return lambda link: link.group(0) if (page.parent / link.group("file")).exists() else instead(link)

    # Neither a page's own headings nor what has a scheme.
    link = r"\[(?P<text>[^\[\]]+)\]\((?![a-z]+:)(?P<file>[^()#\s]+)(?:#[^()\s]*)?\)"
    # A link alone in parentheses has nothing to say without what it leads to.
    text = re.sub(rf"\s\({link}\)", kept(lambda link: ""), page.read_text())
    page.write_text(re.sub(rf"(?<!!){link}", kept(lambda link: link["text"]), text))
