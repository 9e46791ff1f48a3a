"""The studio: a local web page to explore who learns what, and to watch parties at work.

page/          what the browser loads: no third-party script, nothing from outside
server         addresses, the token, what a browser may do; answers as lines of JSON
explorer       what the page asks of the accountants and planners
answers        what they answer, as plain values
networks       graphs: by name, by upload, out of a study; limits
controls       which sliders a protocol has, and where they stand for a given one
snippets       what is on the page as a command line, as Python, as a study file
homes, watch   running parties
"""
