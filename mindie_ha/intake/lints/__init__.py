"""What is wrong with an object in a file, before or after it goes to a cluster. Pure.

`subjects.py` reads files into objects, `remarks.py` holds what is said about one, each other module the
rules for some objects. To add rules for another kind, write one module and add its line to
`checking.RULES`.
"""
